"""Small networks of many architectures, with random weights: the block of the original at a few channels.

`NETWORKS` has for each name its kind and two functions: the network, and a tuple of inputs for it.
"""

from . import convolutions, dense, detection, diffusion, encoders, fields, graphs, language, mixers, pyramids
from . import recurrent, selective, series, sound, speech, states, tables, vision, yolo

KINDS = {
    "images": [convolutions, selective, vision, pyramids, mixers],
    "detection and dense prediction": [yolo, detection, dense],
    "generators, fields and equations": [diffusion, fields],
    "text": [language, encoders],
    "sequences with a state": [states, recurrent],
    "speech and sound": [speech, sound],
    "graphs, points, tables, series": [graphs, tables, series],
}
NETWORKS = {
    name: (kind, *entry)
    for kind, modules in KINDS.items()
    for module in modules
    for name, entry in module.NETWORKS.items()
}
