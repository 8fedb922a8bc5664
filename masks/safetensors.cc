#include "parsimony/masks/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "parsimony/graph/files.h"
#include "parsimony/masks/errors.h"

namespace parsimony {

namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;
constexpr size_t kMaxHeader = 100'000'000;  // as in the reference implementation
constexpr const char* kMetadata = "__metadata__";

struct Type {
  std::string_view name;
  uint64_t bytes;
  bool floating;
};

constexpr std::array<Type, 13> kTypes = {{{"BOOL", 1, false},
                                          {"U8", 1, false},
                                          {"I8", 1, false},
                                          {"U16", 2, false},
                                          {"I16", 2, false},
                                          {"U32", 4, false},
                                          {"I32", 4, false},
                                          {"U64", 8, false},
                                          {"I64", 8, false},
                                          {"F16", 2, true},
                                          {"BF16", 2, true},
                                          {"F32", 4, true},
                                          {"F64", 8, true}}};

/// One tensor of the header, not yet checked against its neighbours.
struct Entry {
  ElementMask mask;
  const Type* type = nullptr;
  uint64_t begin = 0;
  uint64_t end = 0;
};

std::vector<const ElementMask*> sorted(const std::vector<ElementMask>& masks) {
  std::vector<const ElementMask*> result;
  result.reserve(masks.size());
  for (const ElementMask& mask : masks) result.push_back(&mask);
  const auto by_name = [](const auto* a, const auto* b) { return a->tensor < b->tensor; };
  std::sort(result.begin(), result.end(), by_name);
  for (size_t i = 1; i < result.size(); ++i) {
    if (result[i]->tensor == result[i - 1]->tensor) {
      throw errors::unwritable_mask(result[i]->tensor, "there are two");
    }
  }
  return result;
}

void check_name(const std::string& name) {
  if (name == kMetadata) throw errors::unwritable_mask(name, "the format reserves this name");
  try {
    static_cast<void>(Json(name).dump());
  } catch (const Json::exception&) {
    throw errors::unwritable_mask(name, "its name is not UTF-8");
  }
}

std::string header_text(const std::vector<const ElementMask*>& masks) {
  Json header = {{kMetadata, {{"format", "parsimony"}}}};
  size_t offset = 0;
  for (const ElementMask* mask : masks) {
    check_name(mask->tensor);
    header[mask->tensor] = {{"dtype", "BOOL"},
                            {"shape", mask->dims},
                            {"data_offsets", {offset, offset + mask->keep.size()}}};
    offset += mask->keep.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

std::string little_endian(uint64_t value) {
  std::string bytes(kLengthBytes, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

uint64_t read_length(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

Json parse_header(std::string_view text, std::string_view file) {
  std::vector<std::set<std::string>> keys;
  const auto reject_duplicates = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(parsed.get<std::string>()).second) {
      throw errors::bad_mask(file, parsed.get<std::string>(), "stands twice in the header");
    }
    return true;
  };
  try {
    Json header = Json::parse(text, reject_duplicates);
    if (header.is_object()) return header;
  } catch (const Json::exception&) {
    throw errors::bad_mask_file(file, "the header is not JSON");
  }
  throw errors::bad_mask_file(file, "the header is not a JSON object");
}

/// Bytes that the shape asks for; `limit` + 1 where they are more than the file has.
uint64_t bytes_of(const std::vector<uint64_t>& shape, uint64_t element, uint64_t limit) {
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  uint64_t bytes = element;
  for (uint64_t dim : shape) {
    if (dim > limit / bytes) return limit + 1;
    bytes *= dim;
  }
  return bytes;
}

bool are_sizes(const Json& list) {
  const auto is_size = [](const Json& x) {
    return x.is_number_unsigned() && x.get<uint64_t>() <= uint64_t{1} << 62;
  };
  return list.is_array() && std::all_of(list.begin(), list.end(), is_size);
}

Entry read_entry(const std::string& name, const Json& fields, uint64_t data_size,
                 std::string_view file) {
  const auto field = [&](const char* key) {
    return fields.is_object() && fields.contains(key) ? fields[key] : Json();
  };
  const Json dtype = field("dtype");
  const Json shape = field("shape");
  const Json offsets = field("data_offsets");
  if (!dtype.is_string() || !are_sizes(shape) || !are_sizes(offsets) || offsets.size() != 2) {
    throw errors::bad_mask(file, name, "wanted \"dtype\", \"shape\" and two \"data_offsets\"");
  }
  const auto has_name = [&](const Type& type) { return type.name == dtype.get<std::string>(); };
  const auto* type = std::find_if(kTypes.begin(), kTypes.end(), has_name);
  if (type == kTypes.end()) throw errors::mask_dtype(file, name, dtype.get<std::string>());

  Entry entry{{name, shape.get<Shape>(), {}}, type, offsets[0], offsets[1]};
  if (entry.begin > entry.end || entry.end > data_size) {
    throw errors::bad_mask(file, name, "its data_offsets lie outside of the file");
  }
  const uint64_t wanted = bytes_of(shape.get<std::vector<uint64_t>>(), type->bytes, data_size);
  if (wanted != entry.end - entry.begin) {
    throw errors::bad_mask(file, name, "its shape does not fit its data_offsets");
  }
  return entry;
}

/// The format wants the data without holes and overlaps.
void check_cover(std::vector<Entry>& entries, uint64_t data_size, std::string_view file) {
  const auto by_offset = [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  };
  std::sort(entries.begin(), entries.end(), by_offset);
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end) {
      throw errors::bad_mask(file, entry.mask.tensor,
                             entry.begin < end ? "its data overlaps that of another tensor"
                                               : "there is a gap before its data");
    }
    end = entry.end;
  }
  if (end != data_size) throw errors::bad_mask_file(file, "there are bytes behind the last tensor");
}

void fill(Entry& entry, std::string_view data) {
  const auto width = static_cast<size_t>(entry.type->bytes);
  const auto count = static_cast<size_t>(entry.end - entry.begin) / width;
  entry.mask.keep.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view element =
        data.substr(static_cast<size_t>(entry.begin) + i * width, width);
    unsigned any = 0;
    for (char byte : element.substr(0, width - 1)) any |= static_cast<unsigned char>(byte);
    const unsigned top = static_cast<unsigned char>(element.back());
    any |= entry.type->floating ? top & 0x7fU : top;  // -0.0 is zero
    entry.mask.keep[i] = any != 0 ? 1 : 0;
  }
}

}  // namespace

void write_masks(const std::string& path, const std::vector<ElementMask>& masks) {
  const std::vector<const ElementMask*> ordered = sorted(masks);
  const std::string header = header_text(ordered);
  NewFile file(path);
  file.write(little_endian(header.size()));
  file.write(header);
  for (const ElementMask* mask : ordered) {
    file.write({reinterpret_cast<const char*>(mask->keep.data()), mask->keep.size()});
  }
  file.commit();
}

std::vector<ElementMask> parse_masks(std::string_view bytes, std::string_view file_name) {
  if (bytes.size() < kLengthBytes) throw errors::bad_mask_file(file_name, "it has no header");
  const uint64_t length = read_length(bytes);
  if (length > kMaxHeader || length > bytes.size() - kLengthBytes) {
    throw errors::bad_mask_file(file_name, "its header is longer than the file or than 100 MB");
  }
  const std::string_view text = bytes.substr(kLengthBytes, static_cast<size_t>(length));
  const std::string_view data = bytes.substr(kLengthBytes + static_cast<size_t>(length));

  std::vector<Entry> entries;
  const Json header = parse_header(text, file_name);
  for (const auto& [name, fields] : header.items()) {
    if (name != kMetadata) entries.push_back(read_entry(name, fields, data.size(), file_name));
  }
  check_cover(entries, data.size(), file_name);
  const auto by_name = [](const Entry& a, const Entry& b) { return a.mask.tensor < b.mask.tensor; };
  std::sort(entries.begin(), entries.end(), by_name);
  std::vector<ElementMask> masks;
  masks.reserve(entries.size());
  for (Entry& entry : entries) {
    fill(entry, data);
    masks.push_back(std::move(entry.mask));
  }
  return masks;
}

std::vector<ElementMask> read_masks(const std::string& path) {
  return parse_masks(read_file(path), path);
}

}  // namespace parsimony
