"""The ten networks: what each is given, how its answers are read, and one number of what it is for.

Every network has `inputs(shared, part)`: arrays by input name, one entry per sample;
`value(dense, small, shared)`: the task's number from the outputs on the test part, those of the dense
network beside those of the small one; and `picture(outputs)`, which draws an answer, where there is
something to see. Its answers to `shown()` are drawn.
"""

import numpy
from PIL import Image, ImageDraw, ImageOps

import sources

MATPLOTLIB = "/usr/share/matplotlib/mpl-data/sample_data/"
SKIMAGE = "/usr/lib/python3/dist-packages/skimage/data/"


def cropped(picture, height, width):
    """The middle of a picture that is scaled until it covers the size; float32 [3, h, w], 0..255."""
    scale = max(width / picture.width, height / picture.height)
    size = (max(width, round(picture.width * scale)), max(height, round(picture.height * scale)))
    picture = picture.resize(size, Image.BILINEAR)
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    picture = picture.crop((left, top, left + width, top + height))
    return numpy.asarray(picture, numpy.float32).transpose(2, 0, 1)


def softmax(x, axis=-1):
    e = numpy.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


class Network:
    states = {}  # input: the output that it receives in the next run
    fixed = {}  # input: its only value
    opened = False  # whether the size of the pictures, which the file fixes, may be any
    measure = ""
    source = None  # of a picture to look at
    counts = (200, 100)  # samples of either part: for the cut and least squares, and to test

    def count(self, part):
        return self.counts[sources.PARTS.index(part)]


class PictureNetwork(Network):
    """One input that takes a photograph."""

    source = SKIMAGE + "astronaut.png"
    mean, std = [0], [1]
    blue_first = False
    matched = 300  # photographs for matching, which are mirrored as well

    def inputs(self, shared, part):
        count = self.count(part) if part == "test" else max(self.count(part), self.matched)
        pictures = [p for p, _ in zip(sources.photographs(shared, part), range(count))]
        if part == "calibration":
            pictures += [ImageOps.mirror(p) for p in pictures]
        return {self.input: numpy.stack([self.prepared(p) for p in pictures])}

    def prepared(self, picture):
        pixels = cropped(picture, *self.sizes)[:: -1 if self.blue_first else 1]
        mean, std = (numpy.array(values, numpy.float32).reshape(-1, 1, 1) for values in (self.mean, self.std))
        return (pixels - mean) / std

    def shown(self):
        picture = Image.open(self.source).convert("RGB")
        return {self.input: self.prepared(picture)[None]}

    def background(self):
        """The picture as the network sees it."""
        pixels = cropped(Image.open(self.source).convert("RGB"), *self.sizes)
        return Image.fromarray(pixels.transpose(1, 2, 0).astype(numpy.uint8))


def area(box):
    return numpy.prod(numpy.maximum(0, box[..., 2:4] - box[..., :2]), axis=-1)


def overlaps(box, boxes):
    """Intersection over union."""
    corner = numpy.minimum(box[2:4], boxes[:, 2:4]), numpy.maximum(box[:2], boxes[:, :2])
    inside = numpy.prod(numpy.maximum(0, corner[0] - corner[1]), axis=-1)
    return inside / (area(box) + area(boxes) - inside + 1e-9)


def suppressed(boxes, scores, classes, threshold):
    """Non-maximum suppression per class: rows of x1, y1, x2, y2, score, class."""
    rows = numpy.column_stack([boxes, scores, classes])
    rows = rows[numpy.argsort(-scores, kind="stable")]
    kept = []
    while len(rows):
        best, rows = rows[0], rows[1:]
        kept.append(best)
        same = rows[:, 5] == best[5]
        rows = rows[~(same & (overlaps(best, rows) > threshold))]
    return numpy.array(kept).reshape(-1, 6)


class Detector(PictureNetwork):
    measure = "boxes found again"
    confidence = 0.3
    names = {0: "person", 4: "airplane", 27: "tie", 39: "bottle", 41: "cup", 44: "spoon", 60: "table"}  # of COCO

    def boxes(self, outputs, k):
        boxes, scores = self.decoded({name: array[k] for name, array in outputs.items()})
        classes, best = scores.argmax(1), scores.max(1)
        sure = best >= self.confidence
        return suppressed(boxes[sure], best[sure], classes[sure], 0.45)

    def value(self, dense, small, shared):
        """Share of the dense network's boxes: same class, IoU of half at least, each taken once."""
        found = expected = 0
        for k in range(len(next(iter(dense.values())))):
            rest = self.boxes(small, k)
            for box in self.boxes(dense, k):
                expected += 1
                match = numpy.where(rest[:, 5] == box[5], overlaps(box, rest), 0) if len(rest) else [0]
                if max(match) >= 0.5:
                    found += 1
                    rest = numpy.delete(rest, int(numpy.argmax(match)), 0)
        return f"{100 * found / expected:.0f} % of {expected}"

    def picture(self, outputs):
        image = self.background()
        draw = ImageDraw.Draw(image)
        for x1, y1, x2, y2, score, kind in self.boxes(outputs, 0):
            colour = "hsl(%d, 90%%, 55%%)" % (int(kind) * 47 % 360)
            draw.rectangle([x1, y1, x2, y2], outline=colour, width=3)
            draw.text((x1 + 4, y1 + 3), f"{self.names.get(int(kind), int(kind))} {score:.2f}", fill=colour)
        return image


class YoloxNano(Detector):
    file, input, sizes = "yolox_nano", "images", (416, 416)
    source = SKIMAGE + "coffee.png"

    def prepared(self, picture):
        """The whole picture in the upper left, the rest grey."""
        scale = min(416 / picture.width, 416 / picture.height)
        resized = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.BILINEAR)
        whole = Image.new("RGB", (416, 416), (114, 114, 114))
        whole.paste(resized)
        return numpy.asarray(whole, numpy.float32).transpose(2, 0, 1)[::-1]

    def background(self):
        pixels = self.prepared(Image.open(self.source).convert("RGB"))[::-1]
        return Image.fromarray(pixels.transpose(1, 2, 0).astype(numpy.uint8))

    def decoded(self, outputs):
        rows = outputs["output"]
        cells = []
        for stride in (8, 16, 32):
            n = 416 // stride
            y, x = numpy.mgrid[:n, :n]
            cells.append(numpy.stack([x.ravel(), y.ravel(), numpy.full(n * n, stride)], 1))
        cells = numpy.concatenate(cells)
        centre = (rows[:, :2] + cells[:, :2]) * cells[:, 2:]
        half = numpy.exp(rows[:, 2:4]) * cells[:, 2:] / 2
        return numpy.hstack([centre - half, centre + half]), rows[:, 4:5] * rows[:, 5:]


class Nanodet(Detector):
    file, input, sizes = "nanodet_m_320", "input.1", (320, 320)
    mean, std = [103.53, 116.28, 123.675], [57.375, 57.12, 58.395]
    blue_first = True
    source = SKIMAGE + "coffee.png"

    def decoded(self, outputs):
        boxes, scores = [], []
        for stride in (8, 16, 32):
            n = 320 // stride
            y, x = numpy.mgrid[:n, :n]
            centre = numpy.stack([x.ravel(), y.ravel()], 1) * stride + 0.5 * (stride - 1)
            sides = outputs[f"dis_pred_stride_{stride}"].reshape(-1, 4, 8)
            left, top, right, bottom = (softmax(sides) @ numpy.arange(8.0) * stride).T
            x, y = centre.T
            boxes.append(numpy.stack([x - left, y - top, x + right, y + bottom], 1))
            scores.append(outputs[f"cls_pred_stride_{stride}"])
        return numpy.concatenate(boxes), numpy.concatenate(scores)


class UltraFace(Detector):
    file, input, sizes = "ultraface_RFB-320", "input", (240, 320)
    mean, std = [127], [128]
    confidence = 0.5
    names = {0: "face"}

    def decoded(self, outputs):
        return outputs["boxes"] * numpy.array([320, 240, 320, 240]), outputs["scores"][:, 1:]


class Candy(PictureNetwork):
    file, input, sizes = "candy", "inputImage", (720, 720)
    counts = (24, 8)
    matched = 40
    measure = "PSNR to the dense network's pictures"

    def value(self, dense, small, shared):
        a, b = (numpy.clip(x["outputImage"], 0, 255) for x in (dense, small))
        return decibels(255, a, b)

    def picture(self, outputs):
        pixels = numpy.clip(outputs["outputImage"][0], 0, 255)
        return Image.fromarray(pixels.transpose(1, 2, 0).astype(numpy.uint8))


class Espcn(PictureNetwork):
    """The file's weights are those of an untrained network, whose answers are no pictures."""

    file, input, sizes = "espcn_bsd300x3_float", "input", (96, 96)
    opened = True
    counts = (256, 64)
    source = None
    std = [255]
    measure = "PSNR to the dense network's answers, of their range (untrained weights)"

    def value(self, dense, small, shared):
        a, b = dense["output"], small["output"]
        return decibels(a.max() - a.min(), a, b)


def decibels(peak, a, b):
    """Mean of the samples' peak signal-to-noise ratios."""
    each = ((a - b) ** 2).reshape(len(a), -1).mean(1)
    return f"{numpy.mean(10 * numpy.log10(peak**2 / numpy.maximum(each, 1e-12))):.1f} dB"


class SINet(PictureNetwork):
    file, input, sizes = "SINet", "data", (320, 320)
    mean, std = [102.890434, 111.25247, 126.91212], [16047.9, 15819.4, 16920.7]
    measure = "IoU with the dense network's portraits"
    source = MATPLOTLIB + "grace_hopper.jpg"
    output = "classifier/1"
    blue_first = True

    def value(self, dense, small, shared):
        a, b = (x[self.output].argmax(1) == 1 for x in (dense, small))
        return f"{(a & b).sum() / max(1, (a | b).sum()):.3f}"

    def picture(self, outputs):
        front = outputs[self.output][0].argmax(0) == 1
        pixels = numpy.array(self.background())
        pixels[~front] = pixels[~front] // 4 + numpy.array([30, 60, 110], numpy.uint8)
        return Image.fromarray(pixels)


class Denoiser(Network):
    measure = "SI-SDR gained"
    seconds = (24, 40)

    def sound(self, shared, part):
        return sources.speech(shared, part, self.seconds[sources.PARTS.index(part)])

    def value(self, dense, small, shared):
        noisy, clean = self.sound(shared, "test")
        gains = []
        for outputs in (dense, small):
            answer = self.heard(noisy, outputs)
            stretches = [slice(i, i + 4 * sources.RATE) for i in range(0, len(clean), 4 * sources.RATE)]
            gains.append(numpy.mean([si_sdr(answer[s], clean[s]) - si_sdr(noisy[s], clean[s]) for s in stretches]))
        return f"{gains[1]:.2f} dB ({100 * gains[1] / gains[0]:.0f} % of dense)"


def si_sdr(answer, clean):
    """Scale-invariant ratio of signal to distortion, in dB (Le Roux et al., 2019)."""
    target = clean * (answer @ clean) / (clean @ clean)
    return 10 * numpy.log10((target @ target) / numpy.sum((answer - target) ** 2))


def framed(sound, length, hop):
    starts = range(0, len(sound) - length + 1, hop)
    return numpy.stack([sound[s : s + length] for s in starts])


def overlapped(frames, hop, count):
    sound = numpy.zeros(count, numpy.float64)
    for i, frame in enumerate(frames):
        sound[i * hop : i * hop + len(frame)] += frame
    return sound


class Dtln(Denoiser):
    counts = (3000, None)
    file = "DTLN_model_1"
    states = {"input_3": "tf_op_layer_stack_2"}

    def inputs(self, shared, part):
        noisy, _ = self.sound(shared, part)
        magnitude = numpy.abs(numpy.fft.rfft(framed(noisy, 512, 128)))
        return {"input_2": magnitude.astype(numpy.float32).reshape(-1, 1, 1, 257)}

    def heard(self, noisy, outputs):
        spectrum = numpy.fft.rfft(framed(noisy, 512, 128))
        mask = outputs["activation_2"].reshape(len(spectrum), 257)
        return overlapped(numpy.fft.irfft(spectrum * mask), 128, len(noisy))


class Gtcrn(Denoiser):
    counts = (600, None)
    file = "gtcrn_simple"
    states = {
        "conv_cache": "conv_cache_out",
        "tra_cache": "tra_cache_out",
        "inter_cache": "inter_cache_out",
    }
    window = numpy.hanning(513)[:-1] ** 0.5

    def inputs(self, shared, part):
        noisy, _ = self.sound(shared, part)
        spectrum = numpy.fft.rfft(framed(noisy, 512, 256) * self.window)
        both = numpy.stack([spectrum.real, spectrum.imag], -1).astype(numpy.float32)
        return {"mix": both.reshape(-1, 1, 257, 1, 2)}

    def heard(self, noisy, outputs):
        both = outputs["enh"].reshape(-1, 257, 2)
        frames = numpy.fft.irfft(both[..., 0] + 1j * both[..., 1]) * self.window
        return overlapped(frames, 256, len(noisy))


class Silero(Network):
    counts = (1500, None)
    file = "silero_vad_op18_ifless"
    states = {"state": "stateN"}
    fixed = {"sr": 16000}
    measure = "same decision on speech"
    seconds = (48, 96)

    def inputs(self, shared, part):
        noisy, clean = sources.speech(shared, part, self.seconds[sources.PARTS.index(part)])
        silent = numpy.arange(len(noisy)) // (2 * sources.RATE) % 2 == 1  # nobody speaks every other two seconds
        return {"input": framed(noisy - silent * clean, 576, 512).reshape(-1, 1, 576)}

    def value(self, dense, small, shared):
        a, b = (x["output"].ravel() >= 0.5 for x in (dense, small))
        return f"{100 * numpy.mean(a == b):.1f} % (speech: {100 * numpy.mean(a):.0f} %)"


class Magika(Network):
    file = "magika_standard_v3_3"
    measure = "same type of file"
    counts = (600, 300)

    def inputs(self, shared, part):
        rows = [self.tokens(content) for content in sources.files(part, self.count(part))]
        return {"bytes": numpy.array(rows, numpy.int32)}

    @staticmethod
    def tokens(content):
        """The first and the last 1,024 bytes without white space around them; 256 fills the rest."""
        first = content[:4096].lstrip()[:1024]
        last = content[-4096:].rstrip()[-1024:]
        return [*first, *[256] * (1024 - len(first)), *[256] * (1024 - len(last)), *last]

    def value(self, dense, small, shared):
        a, b = (x["target_label"].argmax(-1) for x in (dense, small))
        return f"{100 * numpy.mean(a == b):.0f} % of {len(a)} files"


NAMES = "yolox_nano nanodet ultraface candy espcn SINet DTLN_model_1 gtcrn silero Magika".split()
KINDS = YoloxNano, Nanodet, UltraFace, Candy, Espcn, SINet, Dtln, Gtcrn, Silero, Magika
NETWORKS = {name: kind() for name, kind in zip(NAMES, KINDS)}
