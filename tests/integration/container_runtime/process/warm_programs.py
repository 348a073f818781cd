"""Programs that run in new and in forked interpreters, and show what differs."""

PROGRAMS = "/opt/programs"
SEES = """
import gc, json, os, signal, sys
is_warm = "colorsys" in sys.modules  # which nothing else imports
state = {
    "argv": sys.argv[1:], "orig_argv": sys.orig_argv, "path": sys.path, "environment": dict(os.environ),
    "seen": sorted(filter(None, open("/proc/self/environ").read().split(chr(0)))),
    "descriptors": sorted(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task")),
    "signals": {number: str(signal.getsignal(number)) for number in signal.valid_signals()},
    "blocked": list(signal.pthread_sigmask(signal.SIG_BLOCK, ())), "folder": os.getcwd(), "main": __name__,
    "leads": os.getsid(0) == os.getpid(), "niceness": os.getpriority(os.PRIO_PROCESS, 0),
    "executable": sys.executable, "prefix": sys.prefix, "umask": os.umask(0o22),
    "tmp": sorted(map(len, os.listdir("/tmp"))), "collector": [gc.isenabled(), gc.get_threshold()],
}
print(is_warm)
print(json.dumps(state))
"""
WAITS = "import sys, time, subprocess\nsubprocess.Popen(['sleep', '600'])\nprint('waits', flush=True)\ntime.sleep(600)"
ENDS = {
    "exit": "import sys; sys.exit(3)",
    "text": "import sys; sys.exit('no more')",
    "at_once": "import os; os._exit(5)",
    "error": "def fail():\n    raise ValueError('no')\nfail()",
    "signal": "import os; os.kill(os.getpid(), 9)",
    "interrupt": "raise KeyboardInterrupt",
    "at_exit": """
import atexit
atexit.register(print, "at exit")
class A:
    def __del__(self): print("gone")
a = A()
""",
    "fork": """
import os
pid = os.fork()
if pid:
    os.wait()
print("parent" if pid else "child")
""",
    "exec": """
import os, sys
if sys.argv[1:] != ["again"]:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
print("again")
""",
    "finalizers": """
import atexit, gc, weakref
class Said:
    def __init__(self, text): self.text = text
    def __del__(self): print("gone", self.text, LATER)
LATER = "with names"
weakref.finalize(Said, print, "finalized")
held, cycle = Said("held"), Said("cycle")
cycle.self = cycle
gc.collect()
""",
    "held_elsewhere": """
import colorsys
class Said:
    def __del__(self): print("gone")
colorsys.said = Said()
""",
    "own_module": """
import sys, types
own = types.ModuleType("own")
exec("class Said:\\n    def __del__(self): print('gone', NAME)\\nNAME = 'own'\\nsaid = Said()", vars(own))
sys.modules["own"] = own
del own
""",
    "open_files": """
import atexit, colorsys, os, sys, zipfile
if child := os.fork():
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print({name: os.path.getsize(name) for name in ("left", "kept", "left.zip")})
else:
    file, colorsys.kept, archive = open("left", "w"), open("kept", "w"), zipfile.ZipFile("left.zip", "w")
    file.write("text")
    colorsys.kept.write("longer text")
    archive.writestr("name", "text")
""",
    "c_library": """
import ctypes
printf = ctypes.CDLL(None).printf
printf(b"printed by C")
""",
    "output_replaced": """
import os, sys
sys.stdout = os.fdopen(os.dup(1), "w")
print("kept in a buffer")
""",
    "daemon": """
import threading, time
thread = threading.Thread(target=time.sleep, args=(600,), daemon=True)
thread.start()
class A:
    def __del__(self): print("gone")
a = A()
""",
    "unawaited_thread": """
import threading, time
def late():
    time.sleep(0.2)
    print("late")
threading.Thread(target=late).start()
print("main ends")
""",
    "exit_code": "import sys; sys.exit(-2)",
    "exit_handler_fails": """
import atexit
atexit.register(print, "another")
atexit.register(lambda: 1 / 0)
""",
    "signal_handler": """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: print("terminated") or os._exit(9))
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
os.kill(0, signal.SIGUSR2)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
""",
    "module_named_like_ours": """
import importlib.util
for name in ("supervisor", "interpreter_start", "interpreter_end", "warm_interpreter", "smdebug_emulator_scripts"):
    print(name, importlib.util.find_spec(name))
""",
    "descriptors": """
import os
for each in (0, 1, 2):
    os.close(each)
os.open("/dev/null", 0); os.open("/dev/null", 1)
""",
    "thread": """
import sys, threading
thread = threading.Thread(target=lambda: sys.exit(4))
thread.start(); thread.join(); print("on")
""",
    "spawn": """
import multiprocessing
def f(way):
    print("f", way, flush=True)
if __name__ == "__main__":
    for way in ("fork", "spawn", "forkserver"):
        process = multiprocessing.get_context(way).Process(target=f, args=(way,))
        process.start(); process.join(); print(process.exitcode)
""",
}
