from emulator.moto_services.locks import service_lock


def test_a_service_has_one_lock_that_its_holder_may_take_again() -> None:
    assert service_lock("s3") is service_lock("s3")
    assert service_lock("s3") is not service_lock("logs")
    with service_lock("s3"), service_lock("s3"):
        pass
