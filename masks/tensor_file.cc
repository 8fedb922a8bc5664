#include "parsimony/masks/tensor_file.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "parsimony/base/files.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/base/ranges.h"
#include "parsimony/masks/errors.h"

namespace parsimony {

namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;
constexpr size_t kMaxHeader = 100'000'000;      // as in the reference implementation
constexpr int64_t kMaxSize = int64_t{1} << 62;  // of a dimension, and of an offset
constexpr const char* kMetadata = "__metadata__";

struct Type {
  std::string_view name;
  DType dtype;
};

constexpr std::array<Type, 13> kTypes = {{{"BOOL", DType::kBool},
                                          {"U8", DType::kUInt8},
                                          {"I8", DType::kInt8},
                                          {"U16", DType::kUInt16},
                                          {"I16", DType::kInt16},
                                          {"U32", DType::kUInt32},
                                          {"I32", DType::kInt32},
                                          {"U64", DType::kUInt64},
                                          {"I64", DType::kInt64},
                                          {"F16", DType::kFloat16},
                                          {"BF16", DType::kBFloat16},
                                          {"F32", DType::kFloat32},
                                          {"F64", DType::kFloat64}}};

/// One tensor of the header, not yet checked against its neighbours.
struct Entry {
  FileTensor tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

void sort_by_name(std::vector<FileTensor>& tensors) {
  std::ranges::sort(tensors, {}, &FileTensor::name);
}

std::string_view format_name(const FileTensor& tensor) {
  for (const Type& type : kTypes) {
    if (type.dtype == tensor.dtype) return type.name;
  }
  throw errors::unwritable_tensor(tensor.name, "the format has no such element type");
}

/// The name as the header has it.
std::string checked_name(const FileTensor& tensor) {
  if (tensor.name == kMetadata) {
    throw errors::unwritable_tensor(tensor.name, "the format reserves this name");
  }
  const auto bytes = static_cast<int64_t>(tensor.data.size());
  if (bytes != element_count(tensor.dims) * size_of(tensor.dtype)) {
    throw errors::unwritable_tensor(tensor.name, "its elements do not fit its shape");
  }
  try {
    return json_text(tensor.name);
  } catch (const ModelError&) {
    throw errors::unwritable_tensor(tensor.name, "its name is not UTF-8");
  }
}

std::string little_endian(uint64_t value) {
  std::string bytes(kLengthBytes, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

/// The header before the data; `tensors` are sorted like its keys.
std::string head_of(const std::vector<FileTensor>& tensors) {
  std::string text = "{";
  size_t offset = 0;
  const std::string metadata = R"("__metadata__":{"format":"parsimony"},)";
  bool has_metadata = false;
  for (const FileTensor& tensor : tensors) {
    if (&tensor != tensors.data() && (&tensor)[-1].name == tensor.name) {
      throw errors::unwritable_tensor(tensor.name, "there are two");
    }
    if (!has_metadata && tensor.name > kMetadata) text += metadata;
    has_metadata |= tensor.name > kMetadata;
    const size_t end = offset + tensor.data.size();
    text += checked_name(tensor) + R"(:{"data_offsets":[)" + std::to_string(offset) + ',' +
            std::to_string(end) + R"(],"dtype":")" + std::string(format_name(tensor)) +
            R"(","shape":[)";
    for (const int64_t dim : tensor.dims) text += std::to_string(dim) + ',';
    if (!tensor.dims.empty()) text.pop_back();
    text += "]},";
    offset = end;
  }
  if (!has_metadata) text += metadata;
  text.back() = '}';
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return little_endian(text.size()) + text;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t read_length(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

/// Bytes that the shape asks for; `limit` + 1 where they are more than the file has.
uint64_t bytes_of(const std::vector<uint64_t>& shape, uint64_t element, uint64_t limit) {
  if (contains(shape, 0U)) return 0;
  uint64_t bytes = element;
  for (uint64_t dim : shape) {
    if (dim > limit / bytes) return limit + 1;
    bytes *= dim;
  }
  return bytes;
}

Entry read_entry(const JsonReader& fields, uint64_t data_size, std::string_view file) {
  const std::string name(fields.own_key());
  const std::string dtype = fields.at("dtype").text();
  const auto has_name = [&](const Type& type) { return type.name == dtype; };
  const auto* type = std::ranges::find_if(kTypes, has_name);
  if (type == kTypes.end()) throw errors::tensor_dtype(file, name, dtype);
  Entry entry{{name, type->dtype, {}}};
  std::vector<uint64_t> shape;
  for (const JsonReader dim : fields.at("shape").list()) {
    entry.tensor.dims.push_back(dim.integer(0, kMaxSize));
    shape.push_back(static_cast<uint64_t>(entry.tensor.dims.back()));
  }
  const JsonReader offsets = fields.at("data_offsets");
  if (offsets.size() != 2) offsets.wanted("two offsets");
  auto offset = offsets.list().begin();
  entry.begin = static_cast<uint64_t>((*offset).integer(0, kMaxSize));
  entry.end = static_cast<uint64_t>((*++offset).integer(0, kMaxSize));
  if (entry.begin > entry.end || entry.end > data_size) {
    throw errors::bad_tensor(file, name, "its data_offsets lie outside of the file");
  }
  const auto element = static_cast<uint64_t>(size_of(type->dtype));
  if (bytes_of(shape, element, data_size) != entry.end - entry.begin) {
    throw errors::bad_tensor(file, name, "its shape does not fit its data_offsets");
  }
  return entry;
}

/// The format wants the data without holes and overlaps.
void check_cover(std::vector<Entry>& entries, uint64_t data_size, std::string_view file) {
  const auto by_offset = [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  };
  std::ranges::sort(entries, by_offset);
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end) {
      throw errors::bad_tensor(file, entry.tensor.name,
                               entry.begin < end ? "its data overlaps that of another tensor"
                                                 : "there is a gap before its data");
    }
    end = entry.end;
  }
  if (end != data_size)
    throw errors::bad_tensor_file(file, "there are bytes behind the last tensor");
}

}  // namespace

std::string tensor_file(std::vector<FileTensor> tensors) {
  sort_by_name(tensors);
  std::string bytes = head_of(tensors);
  for (const FileTensor& tensor : tensors) bytes += text_of(tensor.data);
  return bytes;
}

void write_tensors(const std::string& path, std::vector<FileTensor> tensors) {
  sort_by_name(tensors);
  const std::string head = head_of(tensors);
  NewFile file(path);
  file.write(head);
  for (const FileTensor& tensor : tensors) file.write(text_of(tensor.data));
  file.commit();
}

std::vector<FileTensor> parse_tensors(std::string_view bytes, std::string_view file_name) {
  if (bytes.size() < kLengthBytes) throw errors::bad_tensor_file(file_name, "it has no header");
  const uint64_t length = read_length(bytes);
  if (length > kMaxHeader || length > bytes.size() - kLengthBytes) {
    throw errors::bad_tensor_file(file_name, "its header is longer than the file or than 100 MB");
  }
  const std::string_view text = bytes.substr(kLengthBytes, static_cast<size_t>(length));
  const std::string_view data = bytes.substr(kLengthBytes + static_cast<size_t>(length));

  std::vector<Entry> entries;
  const JsonDocument header(text, std::string(file_name) + ": header", throw_as<ModelError>);
  for (const JsonReader fields : header.root().members()) {
    if (fields.own_key() == kMetadata) continue;
    entries.push_back(read_entry(fields, data.size(), file_name));
  }
  check_cover(entries, data.size(), file_name);
  std::vector<FileTensor> tensors;
  tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    const auto* begin = reinterpret_cast<const std::byte*>(data.data());
    entry.tensor.data = {begin + entry.begin, begin + entry.end};
    tensors.push_back(std::move(entry.tensor));
  }
  sort_by_name(tensors);
  return tensors;
}

}  // namespace parsimony
