#include "parsimony/api/sample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "parsimony/api/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/npy.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/graph/elements.h"
#include "parsimony/masks/tensor_file.h"

namespace parsimony {
namespace {

DType type_of(std::string_view descr, std::string_view file) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"f2", DType::kFloat16}, {"f4", DType::kFloat32}, {"f8", DType::kFloat64},
      {"i1", DType::kInt8},    {"i2", DType::kInt16},   {"i4", DType::kInt32},
      {"i8", DType::kInt64},   {"u1", DType::kUInt8},   {"u2", DType::kUInt16},
      {"u4", DType::kUInt32},  {"u8", DType::kUInt64},  {"b1", DType::kBool}};
  for (const auto& [name, type] : kTypes) {
    if (name == descr) return type;
  }
  throw errors::bad_element(file, descr, "floats, integers or booleans");
}

TensorBytes array_of(std::string_view npy, const std::string& name, const std::string& file) {
  const NpyHeader header = parse_npy(npy, file);
  TensorBytes array{name, type_of(header.descr, file), header.dims, {}};
  const int64_t bytes = element_count(array.dims) * size_of(array.dtype);
  const auto there = static_cast<int64_t>(npy.size()) - header.data;
  if (there < bytes) {
    throw errors::ends_early(file, static_cast<int64_t>(npy.size()), header.data + bytes,
                             "an array of " + to_string(array.dims));
  }
  const auto data = std::as_bytes(std::span(npy)).subspan(header.data, bytes);
  array.bytes.assign(data.begin(), data.end());
  return array;
}

TensorList read_npz(const std::string& path) {
  constexpr std::string_view kEnding = ".npy";
  const MappedFile file(path);
  const ZipReader zip(file.bytes(), path);
  TensorList arrays;
  for (const ZipEntry& entry : zip.entries()) {
    std::string name = entry.name;
    if (name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
    arrays.push_back(array_of(zip.content(entry), name, path + ": " + entry.name));
  }
  return arrays;
}

TensorList read_safetensors(const std::string& path) {
  const MappedFile file(path);
  TensorList arrays;
  for (const FileTensor& tensor : parse_tensors(file.bytes(), path)) {
    arrays.push_back(
        {tensor.name, tensor.dtype, tensor.dims, {tensor.data.begin(), tensor.data.end()}});
  }
  return arrays;
}

/// False if the number is not one of the type's.
bool write_integer(double number, DType type, std::byte* element) {
  constexpr double kMost = 9007199254740992;  // 2^53: beyond it doubles are no integers one by one
  if (!(std::abs(number) <= kMost) || std::trunc(number) != number) return false;
  const auto integer = static_cast<int64_t>(number);
  std::memcpy(element, &integer, size_of(type));  // little-endian
  return reader_of(type)(element) == number;
}

/// Of another element type.
TensorBytes converted(const TensorBytes& array, DType type) {
  if (type == DType::kUnknown || type == array.dtype) return array;
  const ReadNumber read = reader_of(array.dtype);
  TensorBytes result{array.name, type, array.dims, {}};
  const int64_t count = element_count(array.dims);
  const int64_t from = size_of(array.dtype);
  const int64_t to = size_of(type);
  result.bytes.resize(count * to);
  for (int64_t i = 0; i < count; ++i) {
    const double number = read(array.bytes.data() + i * from);
    std::byte* element = result.bytes.data() + i * to;
    if (is_floating(type)) {
      write_number(number, type, element);
    } else if (!write_integer(number, type, element)) {
      throw errors::element_does_not_fit(array.name, i, number, name_of(type));
    }
  }
  return result;
}

/// Where "arr_3" belongs.
size_t position_of(const TensorBytes& array, const Graph& graph) {
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    names.push_back(graph.value(graph.inputs[i]).name);
    if (array.name == names.back() || array.name == "arr_" + std::to_string(i)) return i;
  }
  throw errors::no_input_for_array(array.name, to_string(array.dims), names);
}

void check_shape(const TensorBytes& array, const Value& input) {
  if (!input.declared) return;
  const bool fits = std::equal(
      array.dims.begin(), array.dims.end(), input.declared->begin(), input.declared->end(),
      [](int64_t found, int64_t wanted) { return wanted < 0 || found == wanted; });
  if (!fits) {
    throw errors::array_of_other_shape(array.name, to_string(array.dims),
                                       to_string(*input.declared));
  }
}

}  // namespace

TensorList read_arrays(const std::string& source) {
  constexpr std::pair<std::string_view, TensorList (*)(const std::string&)> kFormats[] = {
      {"npz", read_npz}, {"safetensors", read_safetensors}};
  for (const auto& [name, read] : kFormats) {
    const std::string prefix = std::string(name) + ":";
    if (source.starts_with(prefix)) return read(source.substr(prefix.size()));
    if (source.ends_with("." + std::string(name))) return read(source);
  }
  throw errors::bad_sample(source);
}

TensorList place_sample(TensorList arrays, const Graph& graph) {
  TensorList placed(graph.inputs.size());
  for (const TensorBytes& array : arrays) {
    const size_t at = position_of(array, graph);
    const Value& input = graph.value(graph.inputs[at]);
    check_shape(array, input);
    placed[at] = converted(array, input.dtype);
    placed[at].name = input.name;
  }
  return placed;
}

std::vector<InputSpec> with_shapes_of(const TensorList& sample, std::vector<InputSpec> specs) {
  InputSpec nothing;
  nothing.open = true;
  if (specs.size() < sample.size()) specs.resize(sample.size(), nothing);
  for (size_t i = 0; i < sample.size(); ++i) {
    if (sample[i].name.empty()) continue;
    specs[i].dims = sample[i].dims;
    specs[i].open = false;
  }
  return specs;
}

}  // namespace parsimony
