#!/usr/bin/env python3
"""Accuracy of a classification model over idx images and labels, run by ONNX Runtime.

Prints correct/total (percent). exit: 0 done, 2 usage, 3 the model cannot be run, 4 files
"""

import sys

import environment  # noqa: F401
from oracle import faults
from oracle.accuracy import accuracy, read_idx
from tables.runs import parser_of


def number(text):
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("images", metavar="IMAGES", help="an idx file, plain or .gz")
    parser.add_argument("labels", metavar="LABELS", help="the same")
    parser.add_argument(
        "--scale", metavar="S", type=number, default=1, help="a number or a fraction like 1/255"
    )
    parser.add_argument("--mean", metavar="M", type=number, default=0)
    parser.add_argument(
        "--std", metavar="D", type=number, default=1, help="a pixel p is fed as (p * S - M) / D"
    )
    parser.add_argument("--count", metavar="N", type=int, help="only the first N images")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="for ONNX Runtime")
    asked = vars(parser.parse_args())
    files = (asked.pop("model"), read_idx(asked.pop("images")), read_idx(asked.pop("labels")))
    correct, total = accuracy(*files, **asked)
    print(f"{correct}/{total} ({100 * correct / total:.1f}%)")
    return faults.FINE


if __name__ == "__main__":
    sys.exit(faults.exit_code("ort_accuracy.py", main))
