import threading

from smdebug.reading.byte_cache import ByteCache


def test_the_least_recently_used_values_are_dropped() -> None:
    cache = ByteCache(30)
    for key in "abc":
        cache.put(key, key.upper(), 10)
    assert cache.get("a") == "A"
    cache.put("d", "D", 10)
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    assert cache.kept == 30


def test_a_replaced_value_counts_once() -> None:
    cache = ByteCache(30)
    cache.put("a", 1, 10)
    cache.put("a", 2, 25)
    assert (cache.get("a"), cache.kept) == (2, 25)


def test_a_value_above_the_limit_is_not_kept_and_drops_nothing() -> None:
    cache = ByteCache(30)
    cache.put("a", 1, 10)
    cache.put("b", 2, 31)
    assert ("a" in cache, "b" in cache, cache.kept) == (True, False, 10)


def test_threads_keep_the_limit() -> None:
    cache = ByteCache(100)

    def work(rank: int) -> None:
        for number in range(2000):
            cache.put((rank, number % 7), number, 10)
            cache.get(((rank + 1) % 4, number % 7))

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.kept == 100 == 10 * sum((rank, number) in cache for rank in range(4) for number in range(7))
