#include "parsimony/api/output_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/data/dataset.h"

namespace parsimony {
namespace {

/// The requested output does not exist, or no output is floating-point.
ConfigError no_output_to_measure(std::string_view name) {
  return ConfigError("--metric: the network has no ",
                     name.empty() ? "floating-point output" : "output " + in_quotes(name));
}

using Row = std::vector<double>;

// Nearly exact outputs would be infinite.
constexpr double kMostDecibels = 200;

double decibels(double signal, double noise) {
  if (noise <= 0) return kMostDecibels;
  if (signal <= 0) return -kMostDecibels;
  return std::clamp(10 * std::log10(signal / noise), -kMostDecibels, kMostDecibels);
}

double dot(const Row& a, const Row& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double squared_distance(const Row& a, const Row& b) {
  return std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                               [](double x, double y) { return (x - y) * (x - y); });
}

/// Returns the mean over the samples.
template <typename OfSample>
double mean_of(const Predictions& predictions, OfSample of) {
  double sum = 0;
  for (size_t i = 0; i < predictions.found.size(); ++i)
    sum += of(predictions.found[i], predictions.expected[i]);
  return sum / static_cast<double>(predictions.found.size());
}

double mse(const Predictions& predictions) {
  return mean_of(predictions, [](const Row& found, const Row& expected) {
    return squared_distance(found, expected) / static_cast<double>(expected.size());
  });
}

double psnr(const Predictions& predictions) {
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const Row& row : predictions.expected) {
    const auto [low, high] = std::ranges::minmax(row);
    least = std::min(least, low);
    most = std::max(most, high);
  }
  const double peak = most - least;
  return mean_of(predictions, [&](const Row& found, const Row& expected) {
    return decibels(peak * peak * static_cast<double>(expected.size()),
                    squared_distance(found, expected));
  });
}

double snr(const Predictions& predictions) {
  return mean_of(predictions, [](const Row& found, const Row& expected) {
    return decibels(dot(expected, expected), squared_distance(found, expected));
  });
}

/// @source Le Roux et al., SDR: Half-baked or Well Done?, 2019
double si_sdr(const Predictions& predictions) {
  return mean_of(predictions, [](const Row& found, const Row& expected) {
    const double own = dot(expected, expected);
    const double scale = own > 0 ? dot(found, expected) / own : 0;
    const double signal = scale * scale * own;
    return decibels(signal, dot(found, found) - signal);
  });
}

double cosine_of(const Row& a, const Row& b) {
  const double lengths = std::sqrt(dot(a, a) * dot(b, b));
  return lengths > 0 ? dot(a, b) / lengths : 1;
}

double cosine(const Predictions& predictions) { return mean_of(predictions, cosine_of); }

/// The layout of a sample's classes: along the first axis of maps [c, h, w], else the last.
struct Classes {
  explicit Classes(const Shape& dims)
      : count(dims.empty()      ? 1
              : dims.size() > 2 ? dims.front()
                                : dims.back()),
        step(dims.size() > 2 ? element_count(dims) / std::max<int64_t>(1, count) : 1) {}

  /// Returns the index of the element of a class for the prediction `at`, a position or a row.
  size_t index(int64_t at, int64_t of_class) const {
    return static_cast<size_t>(step == 1 ? at * count + of_class : of_class * step + at);
  }
  int64_t best(const Row& row, int64_t at) const {
    int64_t best = 0;
    for (int64_t c = 1; c < count; ++c) {
      if (row[index(at, c)] > row[index(at, best)]) best = c;
    }
    return best;
  }
  /// Returns the number of classes with higher scores; NaN ranks last.
  int64_t rank(const Row& row, int64_t at, int64_t of_class) const {
    int64_t ahead = 0;
    for (int64_t c = 0; c < count; ++c) {
      if (!(row[index(at, c)] <= row[index(at, of_class)])) ++ahead;
    }
    return ahead;
  }
  int64_t decisions(const Row& row) const {
    return static_cast<int64_t>(row.size()) / std::max<int64_t>(1, count);
  }

  int64_t count;
  int64_t step;
};

/// Returns the share of predictions whose top classes contain the class of `expected_of`; kNoLabel
/// does not count.
template <typename Expected>
double among_first(const Predictions& predictions, int64_t first, Expected expected_of) {
  const Classes classes(predictions.dims);
  int64_t right = 0;
  int64_t all = 0;
  for (size_t i = 0; i < predictions.found.size(); ++i) {
    for (int64_t at = 0; at < classes.decisions(predictions.found[i]); ++at) {
      const int64_t expected = expected_of(classes, i, at);
      if (expected == kNoLabel) continue;
      ++all;
      if (expected < classes.count && classes.rank(predictions.found[i], at, expected) < first)
        ++right;
    }
  }
  return all > 0 ? static_cast<double>(right) / static_cast<double>(all) : 0;
}

double agreement_of(const Predictions& predictions, int64_t first) {
  return among_first(predictions, first, [&](const Classes& classes, size_t i, int64_t at) {
    return classes.best(predictions.expected[i], at);
  });
}

double agreement(const Predictions& predictions) { return agreement_of(predictions, 1); }
double top5(const Predictions& predictions) { return agreement_of(predictions, 5); }

/// Returns the label of a sample or a prediction; out of range if there is none.
int64_t label_of(const Predictions& predictions, const Classes& classes, size_t sample,
                 int64_t at) {
  const bool one_each = predictions.labels.size() == predictions.found.size();
  const size_t all =
      one_each ? 1 : static_cast<size_t>(classes.decisions(predictions.found[sample]));
  const size_t label = sample * all + (one_each ? 0 : static_cast<size_t>(at));
  return label < predictions.labels.size() ? predictions.labels[label] : classes.count;
}

double accuracy(const Predictions& predictions) {
  return among_first(predictions, 1, [&](const Classes& classes, size_t i, int64_t at) {
    return label_of(predictions, classes, i, at);
  });
}

/// Returns the exponential of the mean cross-entropy. Scores are probabilities if those of the
/// first prediction are, otherwise logits.
double perplexity(const Predictions& predictions) {
  const Classes classes(predictions.dims);
  const auto scores_of = [&](const Row& row, int64_t at) {
    Row scores;
    for (int64_t c = 0; c < classes.count; ++c) scores.push_back(row[classes.index(at, c)]);
    return scores;
  };
  const Row first = scores_of(predictions.expected.front(), 0);
  const bool are_probabilities =
      std::ranges::min(first) >= 0 && std::abs(std::reduce(first.begin(), first.end()) - 1) < 1e-3;
  double loss = 0;
  size_t count = 0;
  for (size_t i = 0; i < predictions.found.size(); ++i) {
    for (int64_t at = 0; at < classes.decisions(predictions.found[i]); ++at) {
      const int64_t label = label_of(predictions, classes, i, at);
      if (label == kNoLabel) continue;
      if (label < 0 || label >= classes.count) {
        throw ModelError("--metric perplexity: label ", label, " is not in 0..", classes.count - 1,
                         ", the classes of the output");
      }
      const Row scores = scores_of(predictions.found[i], at);
      const double score = scores[static_cast<size_t>(label)];
      ++count;
      if (are_probabilities) {
        loss -= std::log(std::max(score, std::numeric_limits<double>::min()));
        continue;
      }
      const double most = std::ranges::max(scores);
      double total = 0;
      for (const double other : scores) total += std::exp(other - most);
      loss += most + std::log(total) - score;
    }
  }
  return count > 0 ? std::exp(loss / static_cast<double>(count)) : 1;
}

/// Returns the mean over the classes that either network predicts.
double iou(const Predictions& predictions) {
  const Classes classes(predictions.dims);
  std::map<int64_t, std::pair<int64_t, int64_t>> seen;  // by class: both, either
  for (size_t i = 0; i < predictions.found.size(); ++i) {
    for (int64_t at = 0; at < classes.decisions(predictions.found[i]); ++at) {
      const int64_t a = classes.best(predictions.found[i], at);
      const int64_t b = classes.best(predictions.expected[i], at);
      ++seen[a].second;
      if (a == b) ++seen[a].first;
      if (a != b) ++seen[b].second;
    }
  }
  double sum = 0;
  for (const auto& [of_class, counts] : seen) {
    sum += static_cast<double>(counts.first) / static_cast<double>(counts.second);
  }
  return seen.empty() ? 1 : sum / static_cast<double>(seen.size());
}

/// Returns the other sample with the largest cosine similarity.
size_t nearest(const std::vector<Row>& rows, size_t to) {
  size_t best = to;
  double closest = -2;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double close = i == to ? -2 : cosine_of(rows[i], rows[to]);
    if (close > closest) {
      closest = close;
      best = i;
    }
  }
  return best;
}

double recall(const Predictions& predictions) {
  size_t same = 0;
  for (size_t i = 0; i < predictions.found.size(); ++i) {
    if (nearest(predictions.found, i) == nearest(predictions.expected, i)) ++same;
  }
  return static_cast<double>(same) / static_cast<double>(predictions.found.size());
}

constexpr auto kMetrics = std::to_array<OutputMetric>({
    {"mse", "mean squared difference from the dense network's output", true, false, mse},
    {"psnr", "peak signal-to-noise ratio in dB; the peak is the range of the dense output", false,
     false, psnr},
    {"snr", "signal-to-noise ratio, dB", false, false, snr},
    {"si-sdr", "scale-invariant signal-to-distortion ratio, dB", false, false, si_sdr},
    {"cosine", "cosine with the dense network's output", false, false, cosine},
    {"agreement", "share of predictions of the dense network's class", false, false, agreement},
    {"top5", "share of predictions whose top five contain the dense network's class", false, false,
     top5},
    {"iou", "mean intersection over union with the dense network's classes", false, false, iou},
    {"recall", "share of samples whose nearest other sample stays the same", false, false, recall},
    {"boxes",
     "share of the dense network's boxes with a confidence of at least 0.3 that are matched: same "
     "class, IoU of at least 0.5; for decoded YOLO outputs",
     false, false, boxes_found_again},
    {"perplexity", "exponential of the mean cross-entropy with the labels", true, true, perplexity},
    {"accuracy", "share of samples with the label's class", false, true, accuracy},
});

size_t index_of(const std::vector<TensorBytes>& outputs, std::string_view name) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (name.empty() ? is_floating(outputs[o].dtype) : outputs[o].name == name) return o;
  }
  throw no_output_to_measure(name);
}

/// Appends a row for each sample of the batch.
void add_rows(const TensorBytes& output, std::vector<Row>& rows) {
  const HostTensor numbers = numbers_of(output);
  const int64_t samples = output.dims.empty() ? 1 : output.dims.front();
  const int64_t width = samples > 0 ? numbers.count() / samples : 0;
  for (int64_t s = 0; s < samples; ++s) {
    Row& row = rows.emplace_back(width);
    for (int64_t i = 0; i < width; ++i) row[static_cast<size_t>(i)] = numbers.number(s * width + i);
  }
}

}  // namespace

bool all_finite(const Predictions& predictions) {
  return std::ranges::all_of(predictions.found, [](const Row& row) {
    return std::ranges::all_of(row, [](double value) { return std::isfinite(value); });
  });
}

std::span<const OutputMetric> output_metrics() { return kMetrics; }

const OutputMetric* find_output_metric(std::string_view name) {
  const auto found = std::ranges::find(kMetrics, name, &OutputMetric::name);
  return found == kMetrics.end() ? nullptr : &*found;
}

Predictions predictions_of(const Outputs& found, const Outputs& expected, std::string_view output,
                           std::vector<int64_t> labels) {
  Predictions predictions;
  for (size_t b = 0; b < expected.size(); ++b) {
    const size_t o = index_of(expected[b], output);
    if (o >= found[b].size() || found[b][o].dims != expected[b][o].dims) {
      throw ModelError("--metric: output ", in_quotes(expected[b][o].name),
                       " has a different shape than the dense network's");
    }
    const Shape& dims = expected[b][o].dims;
    predictions.dims.assign(dims.begin() + (dims.empty() ? 0 : 1), dims.end());
    add_rows(found[b][o], predictions.found);
    add_rows(expected[b][o], predictions.expected);
  }
  if (predictions.expected.empty() || predictions.expected.front().empty()) {
    throw no_output_to_measure(output);
  }
  predictions.labels = std::move(labels);
  return predictions;
}

namespace {

using Row = std::vector<double>;

struct Box {
  double left;
  double top;
  double right;
  double bottom;
  double confidence;
  int64_t of_class;

  double area() const { return std::max(0.0, right - left) * std::max(0.0, bottom - top); }
};

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height;
  return both / (a.area() + b.area() - both);
}

/// The values of one sample, in either layout.
struct BoxRows {
  explicit BoxRows(const Shape& dims)
      : in_columns(dims.size() == 2 && dims[0] < dims[1]),
        boxes(dims.size() == 2 ? dims[in_columns ? 1 : 0] : 0),
        width(dims.size() == 2 ? dims[in_columns ? 0 : 1] : 0) {}

  double number(const Row& row, int64_t box, int64_t i) const {
    return row[static_cast<size_t>(in_columns ? i * boxes + box : box * width + i)];
  }
  int64_t first_class() const { return in_columns ? 4 : 5; }

  bool in_columns;
  int64_t boxes;
  int64_t width;
};

/// Returns the boxes of one sample by descending confidence, after non-maximum suppression per
/// class.
std::vector<Box> boxes_of(const BoxRows& rows, const Row& row) {
  constexpr double kLeastConfidence = 0.3;
  constexpr double kSameBox = 0.5;
  std::vector<Box> found;
  for (int64_t b = 0; b < rows.boxes; ++b) {
    Box box{0, 0, 0, 0, -1, 0};
    for (int64_t c = rows.first_class(); c < rows.width; ++c) {
      if (rows.number(row, b, c) <= box.confidence) continue;
      box.confidence = rows.number(row, b, c);
      box.of_class = c;
    }
    if (!rows.in_columns) box.confidence *= rows.number(row, b, 4);
    if (!(box.confidence >= kLeastConfidence)) continue;
    const double half_width = rows.number(row, b, 2) / 2;
    const double half_height = rows.number(row, b, 3) / 2;
    box.left = rows.number(row, b, 0) - half_width;
    box.right = rows.number(row, b, 0) + half_width;
    box.top = rows.number(row, b, 1) - half_height;
    box.bottom = rows.number(row, b, 1) + half_height;
    found.push_back(box);
  }
  std::ranges::stable_sort(found, std::greater<>(), &Box::confidence);
  std::vector<Box> kept;
  for (const Box& box : found) {
    const bool covered = std::ranges::any_of(kept, [&](const Box& other) {
      return other.of_class == box.of_class && overlap(other, box) > kSameBox;
    });
    if (!covered) kept.push_back(box);
  }
  return kept;
}

}  // namespace

double boxes_found_again(const Predictions& predictions) {
  constexpr double kFoundAgain = 0.5;
  const BoxRows rows(predictions.dims);
  if (rows.width <= rows.first_class()) {
    throw ModelError("--metric boxes: a sample of the output has shape ",
                     to_string(predictions.dims),
                     ", expected rows [boxes, 5 + classes] or columns [4 + classes, boxes]");
  }
  size_t expected = 0;
  size_t again = 0;
  for (size_t i = 0; i < predictions.found.size(); ++i) {
    std::vector<Box> left = boxes_of(rows, predictions.found[i]);
    for (const Box& box : boxes_of(rows, predictions.expected[i])) {
      ++expected;
      const auto same = std::ranges::find_if(left, [&](const Box& other) {
        return other.of_class == box.of_class && overlap(other, box) >= kFoundAgain;
      });
      if (same == left.end()) continue;
      ++again;
      left.erase(same);
    }
  }
  return expected > 0 ? static_cast<double>(again) / static_cast<double>(expected) : 1;
}

}  // namespace parsimony
