// Arrays of samples and of labels.
#include "parsimony/base/npy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/parse.h"
#include "parsimony/base/random.h"
#include "parsimony/data/arrays.h"
#include "parsimony/data/data_file.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"

namespace parsimony {
namespace {

constexpr int64_t kMaxClasses = 65'536;

/// An element type and NumPy's name of it.
using Named = std::pair<std::string_view, DType>;
constexpr auto kSampleTypes = std::to_array<Named>({{"u1", DType::kUInt8},
                                                    {"f4", DType::kFloat32},
                                                    {"f8", DType::kFloat64},
                                                    {"i4", DType::kInt32},
                                                    {"i8", DType::kInt64}});
constexpr auto kLabelTypes =
    std::to_array<Named>({{"u1", DType::kUInt8}, {"i4", DType::kInt32}, {"i8", DType::kInt64}});

void check_type(const ArrayView& array, std::span<const Named> allowed) {
  std::string expected = "one of";
  for (const auto& [name, type] : allowed) {
    if (type == array.dtype) return;
    expected += " " + std::string(name);
  }
  throw errors::bad_element(array.file, descr_of(array.dtype), expected);
}

int64_t samples_in(const ArrayView& array) {
  if (array.dims.empty() || element_count(array.dims) == 0) throw errors::no_samples(array.file);
  return array.dims.front();
}

template <typename Number>
Number element(const ArrayView& array, int64_t i) {
  Number number;
  std::memcpy(&number, array.bytes.data() + i * int64_t{sizeof(Number)}, sizeof(Number));
  return number;
}

template <typename From>
void convert(const ArrayView& array, Samples& samples) {
  std::byte* to = samples.values.data();
  const int64_t count = element_count(array.dims);
  for (int64_t i = 0; i < count; ++i, to += sizeof(float)) {
    const auto converted = static_cast<float>(element<From>(array, i));
    if (!std::isfinite(converted)) {
      throw ModelError(array.file, ": byte ", array.begin + i * int64_t{sizeof(From)},
                       ": a value that is not finite");
    }
    std::memcpy(to, &converted, sizeof(float));
  }
}

Samples values_of(const ArrayView& array) {
  check_type(array, kSampleTypes);
  Samples samples;
  samples.dims.assign(array.dims.begin() + 1, array.dims.end());
  if (samples.dims.empty()) samples.dims = {1};
  if (samples.dims.size() == 2) samples.dims.insert(samples.dims.begin(), 1);  // grey images
  if (array.dtype == DType::kUInt8) {
    samples.values.assign(array.bytes.begin(), array.bytes.end());
    return samples;
  }
  samples.dtype = DType::kFloat32;
  samples.values.resize(element_count(array.dims) * sizeof(float));
  if (array.dtype == DType::kFloat32) convert<float>(array, samples);
  if (array.dtype == DType::kFloat64) convert<double>(array, samples);
  if (array.dtype == DType::kInt32) convert<int32_t>(array, samples);
  if (array.dtype == DType::kInt64) convert<int64_t>(array, samples);
  return samples;
}

int64_t label_at(const ArrayView& array, int64_t i) {
  if (array.dtype == DType::kUInt8) return element<uint8_t>(array, i);
  return array.dtype == DType::kInt32 ? element<int32_t>(array, i) : element<int64_t>(array, i);
}

std::vector<int64_t> labels_of(const ArrayView& array, std::optional<int64_t> ignore) {
  check_type(array, kLabelTypes);
  std::vector<int64_t> labels;
  const int64_t count = element_count(array.dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t label = label_at(array, i);
    if (label == ignore) label = kNoLabel;
    if (label != kNoLabel && (label < 0 || label >= kMaxClasses)) {
      throw errors::bad_label(array.file, array.begin + i * size_of(array.dtype), label,
                              kMaxClasses);
    }
    labels.push_back(label);
  }
  return labels;
}

/// Returns the label dims: [n] or [n, 1] has a label per sample, [n, ..dims] one per element.
Shape label_dims_of(const ArrayView& array) {
  if (element_count(array.dims) == array.dims.front()) return {};
  return {array.dims.begin() + 1, array.dims.end()};
}

Samples labelled(const ArrayView& x, const ArrayView& y, std::optional<int64_t> ignore) {
  const int64_t count = samples_in(x);
  const int64_t labels = samples_in(y);
  if (count != labels) throw errors::counts_differ(x.file, count, y.file, labels);
  Samples samples = values_of(x);
  samples.labels = labels_of(y, ignore);
  samples.label_dims = label_dims_of(y);
  return samples;
}

/// Returns the only array of a file.
ArrayView only_array_in(const DataFile& file) {
  ArrayView array = array_in(file, "");
  const int64_t end = array.begin + std::ssize(array.bytes);
  if (end < file.size()) throw errors::too_long(file.path(), file.size(), end);
  return array;
}

Samples read_pair(std::string_view values, std::string_view labels, std::optional<int64_t> ignore) {
  const DataFile x{std::string(values)};
  const DataFile y{std::string(labels)};
  return labelled(only_array_in(x), only_array_in(y), ignore);
}

Samples chosen(const Samples& from, const std::vector<int64_t>& order, int64_t begin, int64_t end) {
  Samples samples{from.dims, from.dtype, {}, {}, from.label_dims};
  const int64_t stride = from.stride();
  const int64_t labels = element_count(from.label_dims);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t index = order[i];
    const auto first = from.values.begin() + index * stride;
    samples.values.insert(samples.values.end(), first, first + stride);
    const auto label = from.labels.begin() + index * labels;
    samples.labels.insert(samples.labels.end(), label, label + labels);
  }
  return samples;
}

/// Draws the test set from the samples by seed.
void split_by_seed(const Samples& all, const DatasetOptions& options, const std::string& spec,
                   Dataset& data) {
  const int64_t test = test_part_of(all.count(), options, spec);
  const std::vector<int64_t> order = permutation(all.count(), Random(options.seed));
  data.train = chosen(all, order, test, all.count());
  data.test = chosen(all, order, 0, test);
}

void number_classes(Dataset& data) {
  int64_t classes = 0;
  for (const Samples* part : {&data.train, &data.test}) {
    for (const int64_t label : part->labels) classes = std::max(classes, label + 1);
  }
  data.classes = numbers_from(0, classes);
}

}  // namespace

Dataset read_npy(const std::string& place, const DatasetOptions& options) {
  const std::vector<std::string_view> paths = split(place, ',');
  const bool named = std::ranges::none_of(paths, &std::string_view::empty);
  if (!named || (paths.size() != 2 && paths.size() != 4)) {
    throw errors::bad_spec("npy:" + place, "npy:X,Y or npy:X,Y,XTEST,YTEST");
  }
  Dataset data;
  data.name = "npy";
  Samples all = read_pair(paths[0], paths[1], options.ignore);
  if (paths.size() == 4) {
    data.train = std::move(all);
    data.test = read_pair(paths[2], paths[3], options.ignore);
  } else {
    split_by_seed(all, options, "npy:" + place, data);
  }
  number_classes(data);
  return data;
}

Dataset read_labelled_arrays(const std::string& spec, const DatasetOptions& options) {
  const ArrayFiles files(spec);
  const ArrayView* samples = nullptr;
  const ArrayView* labels = nullptr;
  std::string found;
  for (const ArrayView& array : files.arrays()) {
    (names_labels(array.name) ? labels : samples) = &array;
    found += (found.empty() ? "" : ", ") + in_quotes(array.name);
  }
  if (files.arrays().size() != 2 || samples == nullptr || labels == nullptr) {
    throw ConfigError("data ", in_quotes(spec),
                      ": expected an array of samples and one of labels, ", in_quotes("labels"),
                      "; found ", found.empty() ? "none" : found);
  }
  Dataset data;
  data.name = find_data_spec(spec)->format->name;
  split_by_seed(labelled(*samples, *labels, options.ignore), options, spec, data);
  number_classes(data);
  return data;
}

}  // namespace parsimony
