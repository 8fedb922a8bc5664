// Arrays of samples and of labels.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "parsimony/base/random.h"
#include "parsimony/data/data_file_impl.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/npy_array_impl.h"
#include "parsimony/data/readers_impl.h"

namespace parsimony {
namespace {

constexpr int64_t kMaxClasses = 65'536;

/// Checks that the elements are all there. @returns bytes of one
int64_t element_size(const NpyArray& array, std::string_view allowed) {
  const std::string& path = array.file.path;
  if ((' ' + std::string(allowed) + ' ').find(' ' + array.descr + ' ') == std::string::npos) {
    throw errors::bad_element(path, array.descr, "one of " + std::string(allowed));
  }
  const int64_t size = array.descr[1] - '0';
  const int64_t wanted = array.data + element_count(array.dims) * size;
  if (array.file.size() < wanted) {
    throw errors::ends_early(path, array.file.size(), wanted,
                             "an array of " + to_string(array.dims));
  }
  if (array.file.size() > wanted) throw errors::too_long(path, array.file.size(), wanted);
  return size;
}

template <typename From>
void convert(const NpyArray& array, Samples& samples) {
  const char* from = array.file.bytes.data() + array.data;
  std::byte* to = samples.values.data();
  for (int64_t i = element_count(array.dims); i > 0; --i) {
    From value;
    std::memcpy(&value, from, sizeof(From));
    const auto converted = static_cast<float>(value);
    if (!std::isfinite(converted)) {
      throw ModelError(array.file.path, ": byte ", from - array.file.bytes.data(),
                       ": a value that is not finite");
    }
    std::memcpy(to, &converted, sizeof(float));
    from += sizeof(From);
    to += sizeof(float);
  }
}

Samples values_of(const NpyArray& array) {
  element_size(array, "u1 f4 f8 i4 i8");
  Samples samples;
  samples.dims.assign(array.dims.begin() + 1, array.dims.end());
  if (samples.dims.empty()) samples.dims = {1};
  if (samples.dims.size() == 2) samples.dims.insert(samples.dims.begin(), 1);  // grey images
  if (array.descr == "u1") {
    const auto bytes = array.file.part(array.data, array.file.size() - array.data);
    samples.values.assign(bytes.begin(), bytes.end());
    return samples;
  }
  samples.dtype = DType::kFloat32;
  samples.values.resize(element_count(array.dims) * sizeof(float));
  if (array.descr == "f4") convert<float>(array, samples);
  if (array.descr == "f8") convert<double>(array, samples);
  if (array.descr == "i4") convert<int32_t>(array, samples);
  if (array.descr == "i8") convert<int64_t>(array, samples);
  return samples;
}

std::vector<int64_t> labels_of(const NpyArray& array, std::optional<int64_t> ignore) {
  const int64_t size = element_size(array, "u1 i4 i8");
  std::vector<int64_t> labels;
  const int64_t count = element_count(array.dims);
  for (int64_t i = 0, at = array.data; i < count; ++i, at += size) {
    int64_t label = array.file.little_endian(at, size);
    if (array.descr == "i4") label = static_cast<int32_t>(label);
    if (label == ignore) label = kNoLabel;
    if (label != kNoLabel && (label < 0 || label >= kMaxClasses)) {
      throw errors::bad_label(array.file.path, at, label, kMaxClasses);
    }
    labels.push_back(label);
  }
  return labels;
}

/// [n], also written [n, 1], has a label for each sample; [n, ..dims] one for each element.
Shape label_dims_of(const NpyArray& array) {
  if (element_count(array.dims) == array.count()) return {};
  return {array.dims.begin() + 1, array.dims.end()};
}

Samples read_pair(const std::string& values, const std::string& labels,
                  std::optional<int64_t> ignore) {
  const NpyArray x = read_npy_array(values);
  const NpyArray y = read_npy_array(labels);
  if (x.count() != y.count()) throw errors::counts_differ(values, x.count(), labels, y.count());
  Samples samples = values_of(x);
  samples.labels = labels_of(y, ignore);
  samples.label_dims = label_dims_of(y);
  return samples;
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

std::vector<std::string> paths_of(const std::string& place) {
  std::vector<std::string> paths(1);
  for (const char c : place) {
    if (c == ',') {
      paths.emplace_back();
    } else {
      paths.back() += c;
    }
  }
  const bool named = std::none_of(paths.begin(), paths.end(), [](auto& p) { return p.empty(); });
  if (!named || (paths.size() != 2 && paths.size() != 4)) {
    throw errors::bad_spec("npy:" + place, "npy:X,Y or npy:X,Y,XTEST,YTEST");
  }
  return paths;
}

}  // namespace

Dataset read_npy(const std::string& place, const DatasetOptions& options) {
  const std::vector<std::string> paths = paths_of(place);
  Dataset data;
  data.name = "npy";
  data.train = read_pair(paths[0], paths[1], options.ignore);
  if (paths.size() == 4) {
    data.test = read_pair(paths[2], paths[3], options.ignore);
  } else {
    const Samples all = std::move(data.train);
    const int64_t test = test_part_of(all.count(), options, "npy:" + place);
    const std::vector<int64_t> order = permutation(all.count(), Random(options.seed));
    data.train = chosen(all, order, test, all.count());
    data.test = chosen(all, order, 0, test);
  }
  int64_t classes = 0;
  for (const Samples* part : {&data.train, &data.test}) {
    for (const int64_t label : part->labels) classes = std::max(classes, label + 1);
  }
  data.classes = numbers_from(0, classes);
  return data;
}

}  // namespace parsimony
