// The plan as text: laid out by hand, one entry per line, so that two plans can be compared by
// diff.
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/hash.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {
namespace {

UnsupportedError plan_cannot_say(std::string_view what, std::string_view why) {
  return UnsupportedError("a plan cannot hold ", in_quotes(what), ": ", why);
}

std::string text(const std::string& value) {
  try {
    return json_text(value);
  } catch (const ModelError&) {
    throw plan_cannot_say(value, "the name is not UTF-8");
  }
}

std::string text(int64_t value) { return std::to_string(value); }
std::string text(int value) { return std::to_string(value); }
std::string text(bool value) { return value ? "true" : "false"; }

/// The shortest representation that reads back as the same number; never that of an integer.
std::string text(double value) {
  if (!std::isfinite(value)) throw plan_cannot_say(std::to_string(value), "not finite");
  std::array<char, 32> buffer{};
  const char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  const std::string digits(buffer.data(), end - buffer.data());
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

template <typename Number>
std::string text(const std::vector<Number>& values) {
  std::string out = "[";
  for (const Number& value : values) {
    if (out.size() > 1) out += ", ";
    out += text(value);
  }
  return out + "]";
}

using Field = std::pair<std::string_view, std::string>;

std::string object(std::initializer_list<Field> fields) {
  std::string out = "{";
  for (const auto& [key, value] : fields) {
    if (value.empty()) continue;  // a key that this entry does without
    if (out.size() > 1) out += ", ";
    out.append("\"").append(key).append("\": ").append(value);
  }
  return out + "}";
}

/// A number for an int64 scalar, a list for an int64 vector, an object for the rest.
std::string text(const HostTensor& tensor) {
  std::string values = tensor.floating() ? text(tensor.floats) : text(tensor.ints);
  if (tensor.dtype == DType::kInt64 && tensor.dims.empty() && tensor.count() == 1) {
    return text(tensor.ints[0]);
  }
  if (tensor.dtype == DType::kInt64 && tensor.dims == Shape{tensor.count()}) return values;
  return object({{"dtype", text(std::string(name_of(tensor.dtype)))},
                 {"dims", text(tensor.dims)},
                 {"values", values}});
}

std::string line_of(const PlanBlock& block) {
  return object({{"add", text(block.add)}, {"kept_input", text(block.kept_input)}});
}

std::string line_of(const PlanSlice& slice) {
  return object({{"tensor", text(slice.tensor)},
                 {"axis", text(slice.axis)},
                 {"role", text(std::string(name_of(slice.role)))},
                 {"size", text(slice.size)},
                 {"keep", text(slice.keep)}});
}

std::string line_of(const PlanEnd& end) {
  return object({{end.input ? "input" : "output", text(end.value)},
                 {"axis", text(end.axis)},
                 {"size", text(end.size)},
                 {"keep", text(end.keep)}});
}

std::string line_of(const PlanState& state) {
  return object({{"output", text(state.output)}, {"input", text(state.input)}});
}

std::string line_of(const PlanInteger& entry) {
  return object({{"node", text(entry.node)},
                 {"what", text(entry.what)},
                 {"input", entry.input < 0 ? std::string() : text(entry.input)},
                 {"from", text(entry.from)},
                 {"to", text(entry.to)}});
}

std::string line_of(const PlanScale& entry) {
  const PlanInteger& change = entry.change;
  return object({{"node", text(change.node)},
                 {"what", text(change.what)},
                 {"input", change.input < 0 ? std::string() : text(change.input)},
                 {"encodes", text(entry.encodes)},
                 {"now", text(entry.now)},
                 {"from", text(change.from)},
                 {"to", text(change.to)}});
}

std::string line_of(const PlanCopy& copy) {
  return object({{"tensor", text(copy.tensor)},
                 {"of", text(copy.of)},
                 {"consumer", text(copy.consumer)},
                 {"input", text(copy.input)}});
}

std::string line_of(const PlanZeros& entry) {
  return object({{"tensor", text(entry.tensor)}, {"smallest", text(entry.smallest)}});
}

std::string dtype_of(const TensorUpdate& update) {
  return update.dtype == DType::kUnknown ? std::string() : text(std::string(name_of(update.dtype)));
}

/// The hash of the values, or as it was read.
template <typename Element>
std::string fingerprint(const std::vector<Element>& values, const std::string& read) {
  if (values.empty() && !read.empty()) return text(read);
  return text(sha256({reinterpret_cast<const char*>(values.data()), values.size()}));
}

std::string line_of(const TensorUpdate& update) {
  const bool bare = update.dtype == DType::kUnknown;
  if (bare && !update.values.empty()) {
    throw plan_cannot_say(update.tensor, "an update whose values have no type");
  }
  return object({{"tensor", text(update.tensor)},
                 {"reason", text(update.reason)},
                 {"dtype", dtype_of(update)},
                 {"dims", bare ? std::string() : text(update.dims)},
                 {"sha256", bare ? std::string() : fingerprint(update.values, update.sha256)}});
}

std::string line_of(const PlanMask& mask) {
  return object({{"tensor", text(mask.tensor)},
                 {"dims", text(mask.dims)},
                 {"sha256", fingerprint(mask.keep, mask.sha256)}});
}

std::string line_of(const UnprunedDim& kept) {
  return object({{"axis", text(kept.axis)}, {"reason", text(kept.reason)}});
}

std::string line_of(const PlanGroup& group);

/// `[` entries, one per line at `indent`, `]`.
template <typename Entry>
std::string block(const std::vector<Entry>& entries, size_t indent) {
  if (entries.empty()) return "[]";
  std::string out = "[";
  for (const Entry& entry : entries) {
    out.append(out.size() == 1 ? "\n" : ",\n").append(indent, ' ').append(line_of(entry));
  }
  return out.append("\n").append(indent - 2, ' ').append("]");
}

std::string line_of(const PlanGroup& group) {
  return object({{"id", text(group.id)},
                 {"size", text(group.size)},
                 {"kept", text(group.kept)},
                 {"granularity", text(group.granularity)},
                 {"mixes", text(group.mixes)},
                 {"slices", block(group.slices, 6)}});
}

}  // namespace

std::string Plan::to_json() const {
  std::string out = "{\n  \"parsimony_plan\": 1";
  const auto section = [&out](std::string_view key, const std::string& value) {
    out.append(",\n  \"").append(key).append("\": ").append(value);
  };
  section("source", object({{"format", text(format)},
                            {"sha256", sha256.empty() ? std::string() : text(sha256)},
                            {"inputs", inputs.empty() ? std::string() : text(inputs)}}));
  if (!blocks.empty()) section("blocks", block(blocks, 4));
  section("groups", block(groups, 4));
  if (!ends.empty()) section("interface", block(ends, 4));
  if (!states.empty()) section("states", block(states, 4));
  section("integers", block(integers, 4));
  if (!scales.empty()) section("scales", block(scales, 4));
  section("copies", block(copies, 4));
  section("zeros", block(zeros, 4));
  section("folds", block(updates, 4));
  if (constants == Constants::kExact) {
    section("constants", "\"exact\"");
    section("masks", block(masks, 4));
  }
  section("kept_whole", block(unpruned_dims, 4));
  return out + "\n}\n";
}

}  // namespace parsimony
