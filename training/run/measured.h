// Measurements of a run besides accuracy: layer widths, bytes, latency.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "parsimony/report/ledger_point.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// Outputs of each layer now and in the dense network, whose parameters had `dense_shapes`. `plans`
/// determine their axis.
std::vector<LedgerPoint::Layer> layer_widths(Net& net, const std::vector<Plan>& plans,
                                             const std::map<std::string, Shape>& dense_shapes);

/// Size of the files that `save` writes. `scratch` is a folder to create and remove; empty: a
/// temporary one. @throws IoError
int64_t bytes_of(Net& net, const at::Tensor& example, const std::string& scratch);

/// Milliseconds of `forward` on the batch `x` in evaluation mode: the median of 15, after 3.
double latency_of(Net& net, const at::Tensor& x);

}  // namespace parsimony::training
