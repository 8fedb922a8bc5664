#include "parsimony/data/arrays.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "parsimony/base/npy.h"
#include "parsimony/base/parse.h"
#include "parsimony/base/ranges.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/interface.h"
#include "parsimony/masks/tensor_file.h"

namespace parsimony {
namespace {

ConfigError no_input_for_array(std::string_view array, std::string_view dims,
                               std::span<const std::string> inputs) {
  std::string known;
  for (const std::string& name : inputs) known += (known.empty() ? "" : ", ") + in_quotes(name);
  return ConfigError("array ", in_quotes(array), " ", dims, " matches no input; the network has ",
                     known, ".", did_you_mean(array, inputs));
}

constexpr std::string_view kArray = ".npy";

/// Types by NumPy's names.
constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"f2", DType::kFloat16}, {"f4", DType::kFloat32}, {"f8", DType::kFloat64},
    {"i1", DType::kInt8},    {"i2", DType::kInt16},   {"i4", DType::kInt32},
    {"i8", DType::kInt64},   {"u1", DType::kUInt8},   {"u2", DType::kUInt16},
    {"u4", DType::kUInt32},  {"u8", DType::kUInt64},  {"b1", DType::kBool}};

DType type_of(std::string_view descr, std::string_view file) {
  for (const auto& [name, type] : kTypes) {
    if (name == descr) return type;
  }
  throw errors::bad_element(file, descr, "floats, integers or booleans");
}

ArrayView view_of(std::string_view npy, std::string name, std::string file) {
  const NpyHeader header = parse_npy(npy, file);
  ArrayView array{std::move(name), type_of(header.descr, file), header.dims, {}, std::move(file),
                  header.data};
  const int64_t bytes = element_count(array.dims) * size_of(array.dtype);
  const auto there = static_cast<int64_t>(npy.size()) - header.data;
  if (there < bytes) {
    throw errors::ends_early(array.file, static_cast<int64_t>(npy.size()), header.data + bytes,
                             "an array of " + to_string(array.dims));
  }
  array.bytes = std::as_bytes(std::span(npy)).subspan(header.data, bytes);
  return array;
}

ConfigError bad_arrays(std::string_view found) {
  return ConfigError("found ", in_quotes(found), ", expected ", array_forms(),
                     ", with one array per input");
}

/// Writes an integer; returns false if the type cannot represent the number.
bool write_integer(double number, DType type, std::byte* element) {
  constexpr double kMost = 9007199254740992;  // 2^53: doubles cannot represent all larger integers
  if (!(std::abs(number) <= kMost) || std::trunc(number) != number) return false;
  const auto integer = static_cast<int64_t>(number);
  std::memcpy(element, &integer, size_of(type));  // little-endian
  return reader_of(type)(element) == number;
}

}  // namespace

TensorBytes ArrayView::rows(int64_t first, int64_t count) const {
  TensorBytes part{name, dtype, dims, {}};
  part.dims.front() = count;
  const auto stride = static_cast<int64_t>(bytes.size()) / std::max<int64_t>(1, dims.front());
  const auto data = bytes.subspan(first * stride, count * stride);
  part.bytes.assign(data.begin(), data.end());
  return part;
}

std::string_view descr_of(DType type) {
  const auto named = std::ranges::find(kTypes, type, [](const auto& one) { return one.second; });
  return named == std::end(kTypes) ? name_of(type) : named->first;
}

ArrayView array_in(const DataFile& file, std::string name) {
  return view_of(file.bytes(), std::move(name), file.path());
}

TensorBytes ArrayView::all() const { return {name, dtype, dims, {bytes.begin(), bytes.end()}}; }

ArrayFiles::ArrayFiles(const std::string& source) {
  const std::optional<DataSpec> spec = find_data_spec(source);
  if (!spec || spec->format->arrays == nullptr || spec->place.empty()) throw bad_arrays(source);
  (this->*spec->format->arrays)(spec->place);
}

const DataFile& ArrayFiles::open(const std::string& path) { return files_.emplace_back(path); }

void ArrayFiles::add_npz(const std::string& path) {
  const ZipReader& zip = zips_.emplace_back(open(path).bytes(), path);
  for (const ZipEntry& entry : zip.entries()) {
    std::string name = entry.name;
    if (name.ends_with(kArray)) name.resize(name.size() - kArray.size());
    arrays_.push_back(view_of(zip.content(entry), std::move(name), path + ": " + entry.name));
  }
}

void ArrayFiles::add_npy(const std::string& list) {
  for (const std::string_view item : split(list, ',')) {
    const size_t sign = item.find('=');
    if (sign == 0 || sign == std::string::npos) throw bad_arrays("npy:" + list);
    const std::string path(item.substr(sign + 1));
    arrays_.push_back(array_in(open(path), std::string(item.substr(0, sign))));
  }
}

void ArrayFiles::add_safetensors(const std::string& path) {
  for (const FileTensor& tensor : parse_tensors(open(path).bytes(), path)) {
    arrays_.push_back(
        {tensor.name, tensor.dtype, tensor.dims, tensor.data, path + ": " + tensor.name});
  }
}

size_t input_of(const Graph& graph, std::string_view array) {
  size_t i = 0;
  while (i < graph.inputs.size() && array != graph.value(graph.inputs[i]).name &&
         array != "arr_" + std::to_string(i)) {
    ++i;
  }
  return i;
}

ConfigError no_such_input(const Graph& graph, std::string_view array, const Shape& dims) {
  std::vector<std::string> names;
  for (const ValueId v : graph.inputs) names.push_back(graph.value(v).name);
  return no_input_for_array(array, to_string(dims), names);
}

TensorBytes converted(TensorBytes array, DType type) {
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
      throw ModelError("element ", i, " of array ", in_quotes(array.name), " is ",
                       std::to_string(number), ", which the input's type ", name_of(type),
                       " cannot represent");
    }
  }
  return result;
}

bool names_labels(std::string_view array) {
  constexpr auto kNames = std::to_array<std::string_view>({"label", "labels", "target", "targets"});
  return contains(kNames, array);
}

TensorList read_arrays(const std::string& source) {
  const ArrayFiles files(source);
  TensorList arrays;
  for (const ArrayView& view : files.arrays()) arrays.push_back(view.all());
  return arrays;
}

TensorList place_sample(TensorList arrays, const Graph& graph) {
  TensorList placed(graph.inputs.size());
  for (const TensorBytes& array : arrays) {
    const size_t at = input_of(graph, array.name);
    if (at == placed.size()) throw no_such_input(graph, array.name, array.dims);
    const Value& input = graph.value(graph.inputs[at]);
    if (input.declared && !fits_declared(array.dims, *input.declared)) {
      throw errors::array_of_other_shape(array.name, to_string(array.dims),
                                         to_string(*input.declared));
    }
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
