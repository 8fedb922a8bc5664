// Output metrics: how close a network's outputs are to the dense network's, in its task's units.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "parsimony/api/network_error.h"

namespace parsimony {

/// One output of both networks, a row for each sample.
struct Predictions {
  Shape dims;  ///< of a sample
  std::vector<std::vector<double>> found;
  std::vector<std::vector<double>> expected;  ///< of the dense network
  std::vector<int64_t> labels;                ///< of the samples; empty: none
};

struct OutputMetric {
  std::string_view name;
  std::string_view text;  ///< what it is, and its unit
  bool lower_is_better = false;
  bool needs_labels = false;
  double (*value)(const Predictions& predictions);
};

/// mse, psnr, snr, si-sdr, cosine, agreement, top5, iou, recall, boxes, perplexity, accuracy.
std::span<const OutputMetric> output_metrics();

/// Null if there is none of this name.
const OutputMetric* find_output_metric(std::string_view name);

/// @param output  by its name; empty: the first floating-point one
/// @throws ConfigError if there is no such output, ModelError if the networks' have other shapes
Predictions predictions_of(const Outputs& found, const Outputs& expected, std::string_view output,
                           std::vector<int64_t> labels);

/// Are all of the network's answers numbers?
bool all_finite(const Predictions& predictions);

/// The share of the dense network's boxes of a confidence of at least 0.3 for which the network has
/// one of the same class with an intersection over union of at least 0.5; 1 without any. Of a
/// class' boxes that overlap by more than 0.5 the most confident one counts.
///
/// An output has centre, width and height of boxes, and the confidences of their classes: rows
/// [boxes, 5 + classes], where that of an object comes before them (YOLOv5), or columns
/// [4 + classes, boxes], where it does not (YOLOv8). There are more boxes than numbers of each.
/// @throws ModelError for other shapes
double boxes_found_again(const Predictions& predictions);

}  // namespace parsimony
