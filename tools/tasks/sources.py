"""What the networks are run on: photographs, noisy speech, files of many types."""

import functools
import hashlib
import io
import pathlib
import subprocess
import tarfile
import tempfile
import wave

import gzip
import numpy
from PIL import Image

RATE = 16000
PARTS = ("calibration", "test")
VOICES = {
    "calibration": ["en-us", "en-gb", "en-us+f2", "en-gb-x-rp+f4", "en-us+m3", "en-gb-scotland+f3"],
    "test": ["en-us+f5", "en-gb+m7", "en-gb-x-gbclan+f1", "en-us+m1"],
}
FOLDERS = ("/usr/include", "/usr/share", "/usr/lib")


def photographs(shared, part):
    """RGB pictures of BSDS500: its training and validation parts to calibrate, its test part to test."""
    expected = ("test/",) if part == "test" else ("train/", "val/")
    with tarfile.open(shared / "data/bsds500-images.tar") as archive:
        members = [m for m in archive.getmembers() if m.name.startswith(expected) and m.isfile()]
        for member in sorted(members, key=lambda m: mixed(m.name)):
            yield Image.open(io.BytesIO(archive.extractfile(member).read())).convert("RGB")


@functools.lru_cache(maxsize=None)
def speech(shared, part, seconds):
    """(noisy, clean): sentences spoken by several voices, with noise of three kinds at 0 to 10 dB."""
    text = gzip.open(shared / "data/tinyshakespeare.txt.gz", "rt").read()
    lines = [line for line in text.split("\n") if len(line) > 30]
    begin = 0 if part == "calibration" else len(lines) // 2
    voices, spoken, count = VOICES[part], [], 0
    while count < seconds * RATE:
        k = len(spoken)
        spoken.append(said(lines[begin + k], voices[k % len(voices)]))
        count += len(spoken[-1])
    clean = numpy.concatenate(spoken)[: seconds * RATE]
    clean *= 0.1 / numpy.sqrt(numpy.mean(clean**2))
    draw = numpy.random.default_rng(PARTS.index(part))
    noisy = clean.copy()
    for begin in range(0, len(clean), 4 * RATE):
        stretch = slice(begin, min(begin + 4 * RATE, len(clean)))
        noise = coloured(draw, stretch.stop - begin, exponent=draw.choice([0.0, 0.5, 1.0]))
        level = numpy.sqrt(numpy.mean(clean[stretch] ** 2)) * 10 ** (-draw.uniform(0, 10) / 20)
        noisy[stretch] += level * noise
    return noisy.astype(numpy.float32), clean.astype(numpy.float32)


def said(line, voice):
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["espeak-ng", "-v", voice, "-w", file.name, line], check=True)
        with wave.open(file.name) as sound:
            rate = sound.getframerate()
            samples = numpy.frombuffer(sound.readframes(sound.getnframes()), numpy.int16) / 32768
    count = len(samples) * RATE // rate
    spectrum = numpy.fft.rfft(samples)[: count // 2 + 1]
    return numpy.fft.irfft(spectrum, count) * count / len(samples)


def coloured(draw, count, exponent):
    """Noise of unit power whose amplitude falls with that power of the frequency."""
    spectrum = numpy.fft.rfft(draw.standard_normal(count))
    spectrum[1:] *= numpy.arange(1, len(spectrum)) ** -exponent
    noise = numpy.fft.irfft(spectrum, count)
    return noise / numpy.sqrt(numpy.mean(noise**2))


def files(part, count, most_of_one_kind=40):
    """Contents of files of this tree and of the system, few of each suffix."""
    tree = pathlib.Path(__file__).parents[2]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=tree, capture_output=True, check=True)
    paths = [tree / name for name in listed.stdout.decode().split("\0") if name]
    for folder in FOLDERS:
        paths += pathlib.Path(folder).rglob("*.*")
    kinds = {}
    for path in sorted(paths, key=lambda p: mixed(p.name + str(p.parent.name))):
        is_test = mixed(path.name)[0] in "0123"
        if is_test != (part == "test") or len(kinds.setdefault(path.suffix, [])) >= most_of_one_kind:
            continue
        if path.is_file() and not path.is_symlink() and path.stat().st_size >= 16:
            kinds[path.suffix].append(path)
    chosen = sorted((p for some in kinds.values() for p in some), key=lambda p: mixed(str(p)))
    return [path.read_bytes() for path in chosen[:count]]


def mixed(text):
    """An order that depends on nothing but the text."""
    return hashlib.sha256(text.encode()).hexdigest()
