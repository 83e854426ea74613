"""The programs of ``tests/warm.py``: each asks its server for a fork, and ends as that ends."""

import json
import os
import signal
import socket
import sys

FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def main(folder: str, python: str) -> None:
    own, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    while words[:1] == ["-B"]:  # which multiprocessing hands on
        del words[0]
    if own != "python":
        words = [os.path.join(os.path.dirname(python), own), *words]
    elif not words or (words[0].startswith("-") and words[0] not in ("-c", "-m", "-u")):
        os.execv(python, [python, *words])
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    server = socket.socket(socket.AF_UNIX)
    files = [int(name) for name in os.listdir("/dev/fd")]
    files = [file for file in files if file != server.fileno() and _is_open(file)]
    server.connect(f"{folder}/gate")
    request = {
        "words": words,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "numbers": files,
        "hears_interrupts": signal.getsignal(signal.SIGINT) is not signal.SIG_IGN,
    }
    socket.send_fds(server, [json.dumps(request).encode() + b"\n"], files)
    for file in files:
        os.close(file)  # or who reads what the program writes would wait for us too
    answers = server.makefile()
    program = int(answers.readline())
    for number in FORWARDED:
        signal.signal(number, lambda number, _: _tell(program, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    code = int(answers.readline())
    if code < 0:
        signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        if -code in FORWARDED:
            signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _tell(program: int, number: int) -> None:
    try:
        if os.getpgrp() == os.getpid():  # who leads a group hears for it
            os.killpg(os.getpgid(program), number)
        else:
            os.kill(program, number)
    except ProcessLookupError:
        pass


def _is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:  # that of the listing itself
        return False
    return True
