"""Checkpoints that would harm who loads them: nothing in them runs, and nothing falls over.

    hostile_test.py COMMAND
"""
import io
import os
import pickle
import resource
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

COMMAND = os.path.abspath(sys.argv.pop(1)) if __name__ == "__main__" else ""
SECONDS = 20  # of processor time, however busy the machine is
LIMIT = 2 << 30  # bytes of address space

PROTO = b"\x80\x02"


def text(value):
    value = value.encode()
    return b"X" + struct.pack("<I", len(value)) + value


def name(module, attribute):
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def call(module, attribute, *arguments):
    return name(module, attribute) + b"(" + b"".join(text(a) for a in arguments) + b"tR"


def whole(body):
    return PROTO + body + b"."


def storage(key="0", elements=4, kind="FloatStorage", module="torch"):
    return (b"(" + text("storage") + name(module, kind) + text(key) + text("cpu")
            + b"\x8a\x08" + struct.pack("<q", elements) + b"tQ")


def tensor(size=b"K\x02K\x02\x86", stride=b"K\x02K\x01\x86", offset=b"K\x00", of=None):
    return (b"}" + text("w") + name("torch._utils", "_rebuild_tensor_v2") + b"("
            + (of or storage()) + offset + size + stride + b"\x89" + name("collections", "OrderedDict")
            + b")RtRs")


def runs(mark):
    """What would leave `mark` behind if it were run, in every way in which a pickle calls."""
    shell, python = f"touch {mark}", f"open({mark!r}, 'w')"
    return {
        "os.system": whole(call("os", "system", shell)),
        "posix.system": whole(call("posix", "system", shell)),
        "os.popen": whole(call("os", "popen", shell)),
        "subprocess.getoutput": whole(call("subprocess", "getoutput", shell)),
        "eval": whole(call("builtins", "eval", python)),
        "eval of Python 2": whole(call("__builtin__", "eval", python)),
        "exec": whole(call("builtins", "exec", python)),
        "open": whole(call("builtins", "open", mark, "w")),
        "torch.hub.load": whole(call("torch.hub", "load", "someone/repository", "entry")),
        "torch.load": whole(call("torch", "load", mark)),
        "runpy": whole(call("runpy", "run_path", mark)),
        "pickle in a pickle": whole(name("pickle", "loads") + b"(B" + struct.pack(
            "<I", len(whole(call("os", "system", shell)))) + whole(call("os", "system", shell)) + b"tR"),
        "inst": b"(" + b"S'" + shell.encode() + b"'\nios\nsystem\n.",
        "obj": PROTO + b"(" + name("os", "system") + text(shell) + b"o.",
        "newobj": whole(name("os", "system") + b"(" + text(shell) + b"t\x81"),
        "newobj_ex": b"\x80\x04" + name("os", "system") + b"(" + text(shell) + b"t}\x92.",
        "build": whole(name("builtins", "object") + b")\x81" + b"}" + text("__setstate__")
                       + name("os", "system") + b"sb" + text(shell) + b"b"),
        "stack_global": b"\x80\x04" + text("os") + text("system") + b"\x93(" + text(shell) + b"tR.",
        "computed name": b"\x80\x04" + call("builtins", "str", "os") + text("system") + b"\x93("
                         + text(shell) + b"tR.",
        "hidden in a dictionary": whole(b"}" + text("state_dict") + call("os", "system", shell) + b"s"),
        "hidden as a key": whole(b"}" + call("os", "system", shell) + b"K\x01s"),
        "hidden in hooks": whole(tensor()[:-1] + call("os", "system", shell) + b"s"),
        "popped": whole(call("os", "system", shell) + b"0N"),
        "in a persistent id": whole(call("os", "system", shell) + b"Q"),
        "reduce of a reduce": whole(call("operator", "attrgetter", "system")
                                    + b"(" + call("builtins", "__import__", "os") + b"tR(" + text(shell)
                                    + b"tR"),
        "after the end": pickle.dumps({"a": 1}, 2) + whole(call("os", "system", shell)),
    }


def breaks():
    """What would exhaust or crash a careless reader."""
    laughs = b"]q\x00" + b"".join(b"(h" + bytes([i]) + b"h" + bytes([i]) + b"lq" + bytes([i + 1])
                                  for i in range(60))
    return {
        "empty": b"",
        "only a protocol": PROTO,
        "protocol 9": b"\x80\x09N.",
        "unknown opcode": whole(b"\xff"),
        "no stop": PROTO + b"}",
        "stop without a value": whole(b""),
        "pop of nothing": whole(b"0"),
        "tuple of nothing": whole(b"\x87"),
        "mark without an end": whole(b"((("),
        "append without a list": whole(b"NNa"),
        "items without a dictionary": whole(b"NNNs"),
        "build of nothing": whole(b"b"),
        "reduce of nothing": whole(b"R"),
        "reduce of numbers": whole(b"K\x01K\x02R"),
        "absent memo": whole(b"h\x05"),
        "huge memo": whole(b"Nr\xff\xff\xff\xff"),
        "negative memo": whole(b"Np-5\n"),
        "memo of words": whole(b"Npx\n"),
        "extension": whole(b"\x82\x01"),
        "text beyond the end": whole(b"X\xff\xff\xff\xff"),
        "text of 2^63 bytes": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
        "bytes of 2^62 bytes": b"\x80\x05\x96" + struct.pack("<Q", 1 << 62) + b".",
        "long of -1 bytes": whole(b"\x8b\xff\xff\xff\xff"),
        "long of 255 bytes": whole(b"\x8a\xff" + b"\x01" * 255),
        "integer of a million digits": b"I" + b"9" * 1000000 + b"\n.",
        "frame beyond the end": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"N.",
        "frame in a frame": b"\x80\x04\x95\x0b\0\0\0\0\0\0\0\x95\x01\0\0\0\0\0\0\0N.",
        "buffer of nobody": b"\x80\x05\x97.",
        "no text": whole(b"X\x02\0\0\0\xff\xfe"),
        "a million lists": whole(b"]" * 1000000 + b"a" * 999999),
        "a million tuples": whole(b")" + b"\x85" * 1000000),
        "a million marks": whole(b"(" * 1000000),
        "a billion laughs": whole(laughs),
        "a list in itself": whole(b"]q\x00h\x00a"),
        "a dictionary in itself": whole(b"}q\x00" + text("a") + b"h\x00s"),
        "a dictionary as its key": whole(b"}q\x00h\x00h\x00s"),
        "a tensor without a storage": whole(tensor(of=storage("9"))),
        "a storage outside of the archive": whole(tensor(of=storage("../../etc/passwd"))),
        "a storage of 2^62 elements": whole(tensor(of=storage(elements=1 << 62))),
        "a storage of -1 elements": whole(tensor(of=storage(elements=-1))),
        "a storage of code": whole(tensor(of=storage(kind="system", module="os"))),
        "a tensor of a number": whole(tensor(of=b"K\x07")),
        "a negative offset": whole(tensor(offset=b"J\xff\xff\xff\xff")),
        "an offset of 2^62": whole(tensor(offset=b"\x8a\x08" + struct.pack("<q", 1 << 62))),
        "a size of 2^62": whole(tensor(size=(b"\x8a\x08" + struct.pack("<q", 1 << 62)) * 2 + b"\x86")),
        "a negative size": whole(tensor(size=b"J\xff\xff\xff\xffK\x02\x86")),
        "a negative stride": whole(tensor(stride=b"J\xff\xff\xff\xffK\x01\x86")),
        "overlapping strides": whole(tensor(stride=b"K\x01K\x01\x86")),
        "strides of zero": whole(tensor(stride=b"K\x00K\x00\x86")),
        "sizes in themselves": whole(tensor(size=b"]q\x00h\x00a")),
        "fewer strides than sizes": whole(tensor(stride=b"K\x02\x85")),
    }


def archive(content, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as zip:
        zip.writestr("a/data.pkl", content)
        zip.writestr("a/data/0", struct.pack("<4f", 1, 2, 3, 4))
        zip.writestr("a/version", "3\n")
    return file.getvalue()


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


class Hostile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.mark = os.path.join(self.folder, "mark")

    def inspect(self, content):
        """The exit code and what was printed; a crash or a bug of ours fails the test."""
        with open(os.path.join(self.folder, "a.pth"), "wb") as file:
            file.write(content)
        done = subprocess.run([COMMAND, "inspect", "a.pth"], cwd=self.folder, capture_output=True,
                              text=True, preexec_fn=limit, errors="replace")
        self.assertIn(done.returncode, (0, 3, 4), done.stderr[-500:])
        self.assertFalse(os.path.exists(self.mark), "it ran")
        if done.returncode != 0:
            self.assertTrue(done.stderr.startswith("parsimony: "), done.stderr[-500:])
        return done

    def test_nothing_runs(self):
        for what, content in runs(self.mark).items():
            for wrapped in (archive(content), content):
                with self.subTest(what, archive=wrapped is not content):
                    done = self.inspect(wrapped)
                    if done.returncode == 0 and what != "after the end":
                        self.assertIn("rejects it:", done.stdout)

    def test_nothing_falls_over(self):
        for what, content in breaks().items():
            for wrapped in (archive(content), content):
                with self.subTest(what, archive=wrapped is not content):
                    self.inspect(wrapped)

    def test_archives(self):
        good = archive(whole(tensor()))
        self.assertEqual(self.inspect(good).returncode, 0)
        directory = good.rindex(b"PK\x05\x06")
        cases = {
            "bomb": archive(whole(b"}") + b"\0" * (1 << 30), zipfile.ZIP_DEFLATED),
            "cut": good[:-40],
            "no directory": good[:directory],
            "directory elsewhere": good[:directory + 16] + b"\xff\xff\xff\x7f" + good[directory + 20:],
            "65535 entries": good[:directory + 8] + b"\xff\xff\xff\xff" + good[directory + 12:],
            "other content": good.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v3"),
            "nothing but an end": good[directory:],
        }
        for what, content in cases.items():
            with self.subTest(what):
                self.inspect(content)

    def test_nothing_is_written(self):
        """What cannot be read leaves no output, and an old one as it was."""
        with open(os.path.join(self.folder, "b.pth"), "w") as file:
            file.write("old")
        for content in (archive(breaks()["a size of 2^62"]), archive(runs(self.mark)["os.system"])):
            with open(os.path.join(self.folder, "a.pth"), "wb") as file:
                file.write(content)
            done = subprocess.run([COMMAND, "prune", "a.pth", "-o", "b.pth", "--ratio", "0.5"],
                                  cwd=self.folder, capture_output=True, preexec_fn=limit)
            self.assertIn(done.returncode, (3, 4))
            with open(os.path.join(self.folder, "b.pth")) as file:
                self.assertEqual(file.read(), "old")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.pth", "b.pth"])


if __name__ == "__main__":
    unittest.main(verbosity=1)
