// Output metrics: how close a network's outputs are to the dense network's, in its task's units.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "parsimony/api/network_error.h"

namespace parsimony {

/// One output of both networks, with a row per sample.
struct Predictions {
  Shape dims;  ///< of a sample
  std::vector<std::vector<double>> found;
  std::vector<std::vector<double>> expected;  ///< of the dense network
  std::vector<int64_t> labels;                ///< of the samples; empty: none
};

struct OutputMetric {
  std::string_view name;
  std::string_view text;  ///< description, and unit
  bool lower_is_better = false;
  bool needs_labels = false;
  double (*value)(const Predictions& predictions);
};

/// mse, psnr, snr, si-sdr, cosine, agreement, top5, iou, recall, boxes, perplexity, accuracy.
std::span<const OutputMetric> output_metrics();

/// Returns the metric of this name; null if there is none.
const OutputMetric* find_output_metric(std::string_view name);

/// Collects one output of both networks. @param output  its name; empty: the first floating-point
/// output. @throws ConfigError if there is no such output, ModelError if its shapes differ
Predictions predictions_of(const Outputs& found, const Outputs& expected, std::string_view output,
                           std::vector<int64_t> labels);

/// Returns whether all predictions of the network are finite.
bool all_finite(const Predictions& predictions);

/// Returns the share of the dense network's boxes with a confidence of at least 0.3 that are
/// matched by a box of the same class with an intersection over union of at least 0.5; 1 without
/// any. Of boxes of a class that overlap by more than 0.5, only the most confident one counts.
///
/// An output has centre, width and height of boxes and the confidences of their classes: rows
/// [boxes, 5 + classes] with the objectness before the classes (YOLOv5), or columns [4 + classes,
/// boxes] without it (YOLOv8). There must be more boxes than values per box.
/// @throws ModelError for other shapes
double boxes_found_again(const Predictions& predictions);

}  // namespace parsimony
