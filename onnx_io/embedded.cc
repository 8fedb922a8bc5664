#include <google/protobuf/io/coded_stream.h>

#include <limits>
#include <utility>

#include "parsimony/base/types.h"
#include "parsimony/onnx_io/embedded_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

using google::protobuf::io::CodedOutputStream;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::TensorProto;

constexpr size_t kLarge = size_t{1} << 14;  // bytes

/// The encodings of a field.
/// @source protobuf.dev, "Encoding": message structure
enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// A field of a message.
struct WireField {
  int number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;         ///< of a varint
  std::string_view contents;  ///< of bytes: a message or a string
  std::string_view whole;     ///< with its tag

  bool is_message(int of) const { return number == of && wire == Wire::kBytes; }
};

std::optional<uint64_t> read_varint(std::string_view& left) {
  constexpr int kBits = 7;
  constexpr int kMost = 64;
  uint64_t value = 0;
  for (int shift = 0; shift < kMost && !left.empty(); shift += kBits) {
    const auto byte = static_cast<unsigned char>(left.front());
    left.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// Takes the first field from what is left of a message; nothing if it is damaged, or a group,
/// which ONNX does not have.
std::optional<WireField> read_field(std::string_view& left) {
  const std::string_view begin = left;
  const std::optional<uint64_t> tag = read_varint(left);
  if (!tag || *tag > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  WireField field;
  field.number = static_cast<int>(*tag >> 3);
  field.wire = static_cast<Wire>(*tag & 7);
  std::optional<uint64_t> value = 0;
  uint64_t skipped = 0;
  switch (field.wire) {
    case Wire::kVarint:
      value = read_varint(left);
      break;
    case Wire::kBytes:
      value = read_varint(left);
      skipped = value.value_or(0);
      break;
    case Wire::kFixed64:
      skipped = sizeof(uint64_t);
      break;
    case Wire::kFixed32:
      skipped = sizeof(uint32_t);
      break;
    default:
      return std::nullopt;
  }
  if (!value || skipped > left.size()) return std::nullopt;
  field.value = *value;
  field.contents = left.substr(0, skipped);
  left.remove_prefix(skipped);
  field.whole = begin.substr(0, begin.size() - left.size());
  return field;
}

/// Calls `visit` for the fields of a message. @returns what could not be read
template <typename Visit>
std::string_view each_field(std::string_view message, const Visit& visit) {
  while (!message.empty()) {
    std::string_view left = message;
    const std::optional<WireField> field = read_field(left);
    if (!field) return message;
    visit(*field);
    message = left;
  }
  return message;
}

/// Appends what precedes the contents of a field.
void append_head(std::string& to, int number, uint64_t bytes) {
  uint8_t buffer[2 * 10];  // a varint has ten bytes at most
  const uint32_t tag = static_cast<uint32_t>(number) << 3 | static_cast<uint32_t>(Wire::kBytes);
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(tag, buffer);
  end = CodedOutputStream::WriteVarint64ToArray(bytes, end);
  to.append(buffer, end);
}

void append(std::string& to, int number, std::string_view contents) {
  append_head(to, number, contents.size());
  to += contents;
}

/// Returns the elements of a tensor if they are many, and raw bytes alone.
std::optional<std::string_view> large_elements(std::string_view tensor) {
  std::string_view raw;
  int type = TensorProto::UNDEFINED;
  bool others = false;
  const std::string_view unread = each_field(tensor, [&](const WireField& field) {
    switch (field.number) {
      case TensorProto::kRawDataFieldNumber:
        others = others || !raw.empty() || field.wire != Wire::kBytes;
        raw = field.contents;
        break;
      case TensorProto::kDataTypeFieldNumber:
        others = others || field.wire != Wire::kVarint;
        type = static_cast<int>(field.value);
        break;
      case TensorProto::kDimsFieldNumber:
      case TensorProto::kNameFieldNumber:
      case TensorProto::kDocStringFieldNumber:
        break;
      default:
        others = true;
    }
  });
  const bool is_large = raw.size() >= kLarge && size_of(dtype_of_onnx(type)) > 0;
  return unread.empty() && is_large && !others ? std::optional(raw) : std::nullopt;
}

/// Returns the message of a tensor that says where its elements are.
std::string placed(std::string_view tensor, std::string_view elements, std::string_view file) {
  std::string message;
  each_field(tensor, [&](const WireField& field) {
    if (field.number != TensorProto::kRawDataFieldNumber) message += field.whole;
  });
  TensorProto place;  // messages that follow each other are one
  place.set_data_location(TensorProto::EXTERNAL);
  const auto add = [&](const char* key, std::string_view value) {
    onnx::StringStringEntryProto& entry = *place.add_external_data();
    entry.set_key(key);
    entry.set_value(value.data(), value.size());
  };
  add("location", kOwnFile);
  add("offset", std::to_string(elements.data() - file.data()));
  add("length", std::to_string(elements.size()));
  return message + place.SerializeAsString();
}

/// The field of an initializer, before its elements and after them.
std::pair<std::string, std::string> around_elements(std::string_view tensor, int64_t elements) {
  std::string before;
  std::string after;
  each_field(tensor, [&](const WireField& field) {
    const bool place = field.number == TensorProto::kDataLocationFieldNumber ||
                       field.number == TensorProto::kExternalDataFieldNumber;
    if (place) return;
    (field.number < TensorProto::kRawDataFieldNumber ? before : after) += field.whole;
  });
  append_head(before, TensorProto::kRawDataFieldNumber, elements);
  std::string head;
  append_head(head, GraphProto::kInitializerFieldNumber, before.size() + elements + after.size());
  return {head + before, after};
}

}  // namespace

std::optional<Reduced> without_elements(std::string_view file) {
  size_t elements = 0;
  bool good = true;
  const std::string_view unread = each_field(file, [&](const WireField& field) {
    if (!field.is_message(ModelProto::kGraphFieldNumber)) return;
    const std::string_view left = each_field(field.contents, [&](const WireField& part) {
      if (!part.is_message(GraphProto::kInitializerFieldNumber)) return;
      elements += large_elements(part.contents).value_or("").size();
    });
    good = good && left.empty();
  });
  if (!unread.empty() || !good || elements < file.size() / 2) return std::nullopt;
  Reduced reduced;
  each_field(file, [&](const WireField& field) {
    if (!field.is_message(ModelProto::kGraphFieldNumber)) {
      reduced.message += field.whole;
      return;
    }
    std::string graph;
    each_field(field.contents, [&](const WireField& part) {
      const bool is_tensor = part.is_message(GraphProto::kInitializerFieldNumber);
      const auto large = is_tensor ? large_elements(part.contents) : std::nullopt;
      if (!large) {
        graph += part.whole;
        return;
      }
      append(graph, part.number, placed(part.contents, *large, file));
      ++reduced.embedded;
    });
    append(reduced.message, field.number, graph);
  });
  return reduced;
}

EmbeddingMessage::EmbeddingMessage(std::string_view message,
                                   const std::function<std::optional<int64_t>(int)>& bytes) {
  each_field(message, [&](const WireField& field) {
    if (!field.is_message(ModelProto::kGraphFieldNumber)) return add(field.whole);
    const size_t at = parts_.size();
    const int64_t before = std::exchange(bytes_, 0);
    parts_.emplace_back();  // what precedes the graph, once its length is known
    int number = 0;
    each_field(field.contents, [&](const WireField& part) {
      if (!part.is_message(GraphProto::kInitializerFieldNumber)) return add(part.whole);
      if (const std::optional<int64_t> elements = bytes(number)) {
        add_around(part.contents, number, *elements);
      } else {
        add(part.whole);
      }
      ++number;
    });
    append_head(own_.emplace_back(), field.number, bytes_);
    parts_[at].bytes = own_.back();
    bytes_ += before + std::ssize(own_.back());
  });
}

void EmbeddingMessage::write(const std::function<void(std::string_view)>& part,
                             const std::function<void(int)>& elements) const {
  for (const Part& each : parts_) {
    part(each.bytes);
    if (each.initializer >= 0) elements(each.initializer);
  }
}

void EmbeddingMessage::add(std::string_view bytes) {
  parts_.push_back({bytes});
  bytes_ += std::ssize(bytes);
}

void EmbeddingMessage::add_around(std::string_view tensor, int initializer, int64_t elements) {
  auto [before, after] = around_elements(tensor, elements);
  add(own_.emplace_back(std::move(before)));
  parts_.back().initializer = initializer;
  bytes_ += elements;
  add(own_.emplace_back(std::move(after)));
}

}  // namespace parsimony::onnx_io
