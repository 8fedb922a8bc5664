// A plan as JSON: it is read and validated, every error with its place in the file; and written,
// laid out by hand, one entry per line, so that two plans can be compared by diff.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/hash.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {
namespace {

constexpr int kVersion = 2;  // 1 has other names for `updates` and `unpruned_dims`
constexpr int64_t kMaxSize = int64_t{1} << 48;  // as for any tensor, see element_count

constexpr std::array kDTypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                                DType::kInt8,    DType::kInt16,   DType::kInt32,   DType::kInt64,
                                DType::kUInt8,   DType::kUInt16,  DType::kUInt32,  DType::kUInt64,
                                DType::kBool};

/// Reads a list, entry by entry; none where the key is absent.
template <typename Entry>
std::vector<Entry> read_list(JsonReader at, const char* key, Entry (*read)(JsonReader)) {
  std::vector<Entry> entries;
  if (!at.has(key)) return entries;
  entries.reserve(at.at(key).size());
  for (const JsonReader entry : at.at(key).list()) entries.push_back(read(entry));
  return entries;
}

std::vector<int64_t> read_keep(JsonReader at, int64_t size) {
  std::vector<int64_t> keep;
  keep.reserve(at.size());
  for (const JsonReader entry : at.list()) {
    const int64_t index = entry.integer(0, size - 1);
    if (!keep.empty() && index <= keep.back()) {
      entry.fail("found " + std::to_string(index) + " after " + std::to_string(keep.back()) +
                 ", expected ascending indices");
    }
    keep.push_back(index);
  }
  if (keep.empty()) at.fail("found none, expected at least one index");
  return keep;
}

PlanBlock read_block(JsonReader at) {
  at.only({"add", "kept_input", "group"});
  PlanBlock block{at.at("add").name(), at.at("kept_input").small(0, 1)};
  if (const auto group = at.find("group")) block.group = group->name();
  return block;
}

Role read_role(JsonReader at) {
  for (const Role role : {Role::kOut, Role::kIn, Role::kWith}) {
    if (at.text() == name_of(role)) return role;
  }
  at.expected("\"out\", \"in\" or \"with\"");
}

PlanSlice read_slice(JsonReader at) {
  at.only({"tensor", "axis", "role", "size", "keep"});
  PlanSlice slice;
  slice.tensor = at.at("tensor").name();
  slice.axis = at.at("axis").small(0);
  slice.role = read_role(at.at("role"));
  slice.size = at.at("size").integer(1, kMaxSize);
  slice.keep = read_keep(at.at("keep"), slice.size);
  return slice;
}

PlanGroup read_group(JsonReader at) {
  at.only({"id", "size", "kept", "granularity", "mixes", "slices"});
  PlanGroup group;
  group.id = at.at("id").name();
  group.size = at.at("size").small(1);
  group.kept = at.at("kept").small(0, group.size);
  if (at.has("granularity")) group.granularity = at.at("granularity").name();
  if (at.has("mixes")) group.mixes = at.at("mixes").flag();
  at.at("slices");
  group.slices = read_list(at, "slices", read_slice);
  return group;
}

PlanEnd read_end(JsonReader at) {
  at.only({"input", "output", "axis", "size", "keep"});
  PlanEnd end;
  end.input = at.has("input");
  end.value = at.at(end.input ? "input" : "output").name();
  end.axis = at.at("axis").small(0);
  end.size = at.at("size").integer(1, kMaxSize);
  end.keep = read_keep(at.at("keep"), end.size);
  return end;
}

PlanWords read_words(JsonReader at) {
  at.only({"input", "size", "keep"});
  PlanWords words{at.at("input").name(), at.at("size").integer(1, kMaxSize), {}};
  words.keep = read_keep(at.at("keep"), words.size);
  return words;
}

PlanState read_state(JsonReader at) {
  at.only({"output", "input"});
  return {at.at("output").name(), at.at("input").name()};
}

DType read_dtype(JsonReader at) {
  const std::string name = at.text();
  std::vector<std::string> known;
  for (const DType type : kDTypes) {
    if (name == name_of(type)) return type;
    known.emplace_back(name_of(type));
  }
  at.fail("unknown element type \"" + name + "\"." + did_you_mean(name, known));
}

/// The integers that an element type can hold. uint64 shares its bits with int64.
std::pair<int64_t, int64_t> limits_of(DType type) {
  const bool is_signed = type == DType::kInt8 || type == DType::kInt16 || type == DType::kInt32;
  if (type == DType::kBool) return {0, 1};
  if (size_of(type) == 8) {
    return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
  const int64_t range = int64_t{1} << (8 * size_of(type) - (is_signed ? 1 : 0));
  return {is_signed ? -range : 0, range - 1};
}

void read_values(JsonReader at, HostTensor& tensor) {
  const auto [lowest, highest] = limits_of(tensor.dtype);
  for (const JsonReader value : at.list()) {
    if (tensor.floating()) {
      tensor.floats.push_back(value.number());
    } else {
      tensor.ints.push_back(value.integer(lowest, highest));
    }
  }
}

/// A number is an int64 scalar, a list an int64 vector; anything else is an object.
HostTensor read_tensor(JsonReader at) {
  HostTensor tensor;
  if (at.is_list()) {
    read_values(at, tensor);
    tensor.dims = {tensor.count()};
    return tensor;
  }
  if (!at.is_object()) {
    const auto [lowest, highest] = limits_of(DType::kInt64);
    return HostTensor::scalar(at.integer(lowest, highest));
  }
  at.only({"dtype", "dims", "values"});
  tensor.dtype = read_dtype(at.at("dtype"));
  for (const JsonReader dim : at.at("dims").list()) tensor.dims.push_back(dim.integer(0, kMaxSize));
  const JsonReader values = at.at("values");
  read_values(values, tensor);
  const auto fits = [&] {
    try {
      return element_count(tensor.dims) == tensor.count();
    } catch (const ModelError&) {
      return false;
    }
  };
  if (!fits()) {
    values.fail("found " + std::to_string(tensor.count()) + " values, expected as many as " +
                to_string(tensor.dims) + " has");
  }
  return tensor;
}

PlanInteger read_integer(JsonReader at) {
  at.only({"node", "what", "input", "from", "to"});
  PlanInteger entry;
  entry.node = at.at("node").name();
  entry.what = at.at("what").name();
  if (at.has("input")) entry.input = at.at("input").small(0);
  entry.from = read_tensor(at.at("from"));
  entry.to = read_tensor(at.at("to"));
  if (entry.input < 0 && entry.to.floating() && entry.to.count() != 1) {
    at.at("to").expected("integers, or one number: it is an attribute");
  }
  return entry;
}

PlanScale read_scale(JsonReader at) {
  at.only({"node", "what", "input", "encodes", "now", "from", "to"});
  PlanScale entry;
  entry.change.node = at.at("node").name();
  entry.change.what = at.at("what").name();
  if (at.has("input")) entry.change.input = at.at("input").small(0);
  entry.encodes = at.at("encodes").text();
  entry.now = at.at("now").text();
  entry.change.from = read_tensor(at.at("from"));
  entry.change.to = read_tensor(at.at("to"));
  const HostTensor& to = entry.change.to;
  if (!to.floating() || to.count() != 1) at.at("to").expected("one floating point number");
  return entry;
}

PlanCopy read_copy(JsonReader at) {
  at.only({"tensor", "of", "consumer", "input"});
  return {at.at("tensor").name(), at.at("of").name(), at.at("consumer").name(),
          at.at("input").small(0)};
}

PlanZeros read_zeros(JsonReader at) {
  at.only({"tensor", "smallest"});
  return {at.at("tensor").name(), at.at("smallest").integer(0, kMaxSize)};
}

std::string read_fingerprint(JsonReader at) {
  const std::string digest = at.text();
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (digest.size() != 64 || !std::ranges::all_of(digest, is_hex)) {
    at.expected("64 lower-case hexadecimal digits");
  }
  return digest;
}

Shape read_dims(JsonReader at) {
  Shape dims;
  for (const JsonReader dim : at.list()) dims.push_back(dim.integer(0, kMaxSize));
  try {
    element_count(dims);
  } catch (const ModelError& error) {
    at.fail(error.what());
  }
  return dims;
}

TensorUpdate read_update(JsonReader at) {
  at.only({"tensor", "reason", "dtype", "dims", "sha256"});
  TensorUpdate update{at.at("tensor").name(), at.at("reason").text()};
  if (!at.has("dtype")) return update;
  update.dtype = read_dtype(at.at("dtype"));
  update.dims = read_dims(at.at("dims"));
  update.sha256 = read_fingerprint(at.at("sha256"));
  return update;
}

PlanMask read_mask(JsonReader at) {
  at.only({"tensor", "dims", "sha256"});
  return {at.at("tensor").name(), read_dims(at.at("dims")), {}, read_fingerprint(at.at("sha256"))};
}

Constants read_constants(JsonReader at) {
  const std::string name = at.text();
  if (name != "drop" && name != "exact") at.expected("\"drop\" or \"exact\"");
  return name == "exact" ? Constants::kExact : Constants::kDrop;
}

UnprunedDim read_unpruned_dims(JsonReader at) {
  at.only({"axis", "reason"});
  return {at.at("axis").name(), at.at("reason").text()};
}

PlanFile read_file_beside(JsonReader at) {
  at.only({"name", "text"});
  const std::string name = at.at("name").name();
  const std::filesystem::path path(name);
  if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) {
    at.at("name").expected("a path within the directory");
  }
  return {name, at.has("text") ? std::optional(at.at("text").text()) : std::nullopt};
}

PlanRenaming read_renaming(JsonReader at) {
  at.only({"tensor", "name"});
  return {at.at("tensor").name(), at.has("name") ? at.at("name").name() : std::string()};
}

void read_source(JsonReader at, Plan& plan) {
  at.only({"format", "sha256", "inputs"});
  plan.format = at.at("format").name();
  if (at.has("inputs")) {
    for (const JsonReader input : at.at("inputs").list()) plan.inputs.push_back(input.text());
  }
  if (!at.has("sha256")) return;
  plan.sha256 = read_fingerprint(at.at("sha256"));
}

}  // namespace

Plan Plan::from_json(std::string_view text, std::string_view file_name) {
  const JsonDocument document(text, file_name);
  const JsonReader top = document.root();
  if (!top.is_object() || !top.has("parsimony_plan")) {
    top.fail("expected an object with \"parsimony_plan\": is this a plan?");
  }
  const int version = top.at("parsimony_plan").small(0);
  if (version != 1 && version != kVersion) {
    top.at("parsimony_plan").expected("1 or 2: the plan comes from a newer version");
  }
  const char* const updates = version == 1 ? "folds" : "updates";
  const char* const unpruned_dims = version == 1 ? "kept_whole" : "unpruned_dims";
  top.only({"parsimony_plan", "source", "blocks", "groups", "interface", "words", "states",
            "integers", "followed", "scales", "copies", "zeros", updates, "constants", "masks",
            "files", "renamings", unpruned_dims});
  Plan plan;
  if (top.has("source")) read_source(top.at("source"), plan);
  plan.blocks = read_list(top, "blocks", read_block);
  top.at("groups");
  plan.groups = read_list(top, "groups", read_group);
  plan.ends = read_list(top, "interface", read_end);
  plan.words = read_list(top, "words", read_words);
  plan.states = read_list(top, "states", read_state);
  plan.integers = read_list(top, "integers", read_integer);
  plan.followed = read_list(top, "followed", read_integer);
  plan.scales = read_list(top, "scales", read_scale);
  plan.copies = read_list(top, "copies", read_copy);
  plan.zeros = read_list(top, "zeros", read_zeros);
  plan.updates = read_list(top, updates, read_update);
  if (top.has("constants")) plan.constants = read_constants(top.at("constants"));
  plan.masks = read_list(top, "masks", read_mask);
  plan.files = read_list(top, "files", read_file_beside);
  plan.renamings = read_list(top, "renamings", read_renaming);
  plan.unpruned_dims = read_list(top, unpruned_dims, read_unpruned_dims);
  return plan;
}

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
  return object({{"add", text(block.add)},
                 {"kept_input", text(block.kept_input)},
                 {"group", block.group.empty() ? std::string() : text(block.group)}});
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

std::string line_of(const PlanFile& file) {
  return object(
      {{"name", text(file.name)}, {"text", file.text ? text(*file.text) : std::string()}});
}

std::string line_of(const PlanRenaming& renaming) {
  return object({{"tensor", text(renaming.tensor)},
                 {"name", renaming.name.empty() ? std::string() : text(renaming.name)}});
}

std::string line_of(const PlanWords& words) {
  return object(
      {{"input", text(words.input)}, {"size", text(words.size)}, {"keep", text(words.keep)}});
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
  std::string out = "{\n  \"parsimony_plan\": " + std::to_string(kVersion);
  const auto section = [&out](std::string_view key, const std::string& value) {
    out.append(",\n  \"").append(key).append("\": ").append(value);
  };
  section("source", object({{"format", text(format)},
                            {"sha256", sha256.empty() ? std::string() : text(sha256)},
                            {"inputs", inputs.empty() ? std::string() : text(inputs)}}));
  if (!blocks.empty()) section("blocks", block(blocks, 4));
  section("groups", block(groups, 4));
  if (!ends.empty()) section("interface", block(ends, 4));
  if (!words.empty()) section("words", block(words, 4));
  if (!states.empty()) section("states", block(states, 4));
  section("integers", block(integers, 4));
  if (!followed.empty()) section("followed", block(followed, 4));
  if (!scales.empty()) section("scales", block(scales, 4));
  section("copies", block(copies, 4));
  section("zeros", block(zeros, 4));
  section("updates", block(updates, 4));
  if (constants == Constants::kExact) {
    section("constants", "\"exact\"");
    section("masks", block(masks, 4));
  }
  if (!files.empty()) section("files", block(files, 4));
  if (!renamings.empty()) section("renamings", block(renamings, 4));
  section("unpruned_dims", block(unpruned_dims, 4));
  return out + "\n}\n";
}

}  // namespace parsimony
