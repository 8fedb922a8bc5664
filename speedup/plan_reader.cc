// Reads a plan and believes nothing: every fault is reported with its place in the file.
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "parsimony/speedup/errors.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int64_t kMaxSize = int64_t{1} << 48;  // as for any tensor, see element_count
constexpr size_t kMaxShown = 40;                // characters of a wrong value in a message

constexpr std::array kDTypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                                DType::kInt8,    DType::kInt16,   DType::kInt32,   DType::kInt64,
                                DType::kUInt8,   DType::kUInt16,  DType::kUInt32,  DType::kUInt64,
                                DType::kBool};

/// A value of the plan that knows where it stands. The place is spelled out only in an error.
class Cursor {
 public:
  Cursor(const Json& json, std::string_view file) : json_(json), file_(file) {}

  /// Wants an object that has no other keys than these.
  void only(std::initializer_list<std::string_view> keys) const {
    if (!json_.is_object()) wanted("an object");
    for (const auto& item : json_.items()) {
      if (std::find(keys.begin(), keys.end(), item.key()) != keys.end()) continue;
      const std::vector<std::string> known(keys.begin(), keys.end());
      fail("unknown key \"" + item.key() + "\"." + did_you_mean(item.key(), known));
    }
  }

  bool has(const char* key) const { return json_.contains(key); }

  Cursor at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail("lacks \"" + std::string(key) + "\"");
    return Cursor(*found, *this, key, 0);
  }

  size_t size() const {
    if (!json_.is_array()) wanted("a list");
    return json_.size();
  }
  Cursor operator[](size_t index) const { return Cursor(json_[index], *this, nullptr, index); }

  bool is_list() const { return json_.is_array(); }
  bool is_object() const { return json_.is_object(); }

  std::string text() const {
    if (!json_.is_string()) wanted("a string");
    return json_.get<std::string>();
  }
  /// A string that is not empty.
  std::string name() const {
    if (!json_.is_string() || json_.get_ref<const std::string&>().empty()) wanted("a name");
    return json_.get<std::string>();
  }
  bool flag() const {
    if (!json_.is_boolean()) wanted("true or false");
    return json_.get<bool>();
  }
  int64_t integer(int64_t lowest, int64_t highest) const {
    const bool fits = json_.is_number_integer() &&
                      (!json_.is_number_unsigned() ||
                       json_.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
    const int64_t value = fits ? json_.get<int64_t>() : 0;
    if (!fits || value < lowest || value > highest) {
      wanted("an integer from " + std::to_string(lowest) + " to " + std::to_string(highest));
    }
    return value;
  }
  double number() const {
    const double value = json_.is_number() ? json_.get<double>() : 0;
    if (!json_.is_number() || !std::isfinite(value)) wanted("a finite number");
    return value;
  }

  [[noreturn]] void wanted(const std::string& what) const {
    // Only simple values are shown: a list may be long, or nested deeper than the stack is.
    std::string found = json_.is_array()    ? "a list"
                        : json_.is_object() ? "an object"
                                            : json_.dump();
    if (found.size() > kMaxShown) found = found.substr(0, kMaxShown) + "…";
    fail("found " + found + ", wanted " + what);
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw errors::bad_plan(file_, place(), what);
  }

 private:
  Cursor(const Json& json, const Cursor& parent, const char* key, size_t index)
      : json_(json), file_(parent.file_), parent_(&parent), key_(key), index_(index) {}

  std::string place() const {
    if (parent_ == nullptr) return {};
    std::string before = parent_->place();
    if (key_ == nullptr) return before + "[" + std::to_string(index_) + "]";
    return before.empty() ? key_ : before + "." + key_;
  }

  const Json& json_;
  std::string_view file_;
  const Cursor* parent_ = nullptr;
  const char* key_ = nullptr;
  size_t index_ = 0;
};

int small(const Cursor& at, int64_t lowest) {
  return static_cast<int>(at.integer(lowest, kMaxInt));
}

/// Reads a list, entry by entry; none where the key is absent.
template <typename Entry>
std::vector<Entry> read_list(const Cursor& at, const char* key, Entry (*read)(const Cursor&)) {
  std::vector<Entry> entries;
  if (!at.has(key)) return entries;
  const Cursor list = at.at(key);
  const size_t size = list.size();
  entries.reserve(size);
  for (size_t i = 0; i < size; ++i) entries.push_back(read(list[i]));
  return entries;
}

std::vector<int64_t> read_keep(const Cursor& at, int64_t size) {
  std::vector<int64_t> keep;
  keep.reserve(at.size());
  for (size_t i = 0; i < at.size(); ++i) {
    const Cursor entry = at[i];
    const int64_t index = entry.integer(0, size - 1);
    if (!keep.empty() && index <= keep.back()) {
      entry.fail("found " + std::to_string(index) + " after " + std::to_string(keep.back()) +
                 ", wanted ascending indices");
    }
    keep.push_back(index);
  }
  if (keep.empty()) at.fail("found none, wanted at least one index");
  return keep;
}

PlanBlock read_block(const Cursor& at) {
  at.only({"add", "kept_input"});
  return {at.at("add").name(), static_cast<int>(at.at("kept_input").integer(0, 1))};
}

PlanSlice read_slice(const Cursor& at) {
  at.only({"tensor", "axis", "role", "size", "keep"});
  PlanSlice slice;
  slice.tensor = at.at("tensor").name();
  slice.axis = small(at.at("axis"), 0);
  slice.role = at.at("role").text();
  if (slice.role != "out" && slice.role != "in" && slice.role != "with") {
    at.at("role").wanted("\"out\", \"in\" or \"with\"");
  }
  slice.size = at.at("size").integer(1, kMaxSize);
  slice.keep = read_keep(at.at("keep"), slice.size);
  return slice;
}

PlanGroup read_group(const Cursor& at) {
  at.only({"id", "size", "kept", "granularity", "mixes", "slices"});
  PlanGroup group;
  group.id = at.at("id").name();
  group.size = small(at.at("size"), 1);
  group.kept = static_cast<int>(at.at("kept").integer(0, group.size));
  if (at.has("granularity")) group.granularity = at.at("granularity").name();
  if (at.has("mixes")) group.mixes = at.at("mixes").flag();
  at.at("slices");
  group.slices = read_list(at, "slices", read_slice);
  return group;
}

DType read_dtype(const Cursor& at) {
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

void read_values(const Cursor& at, HostTensor& tensor) {
  const auto [lowest, highest] = limits_of(tensor.dtype);
  for (size_t i = 0; i < at.size(); ++i) {
    if (tensor.floating()) {
      tensor.floats.push_back(at[i].number());
    } else {
      tensor.ints.push_back(at[i].integer(lowest, highest));
    }
  }
}

/// A number is an int64 scalar, a list an int64 vector; anything else is spelled out.
HostTensor read_tensor(const Cursor& at) {
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
  const Cursor dims = at.at("dims");
  for (size_t i = 0; i < dims.size(); ++i) tensor.dims.push_back(dims[i].integer(0, kMaxSize));
  const Cursor values = at.at("values");
  read_values(values, tensor);
  const auto fits = [&] {
    try {
      return element_count(tensor.dims) == tensor.count();
    } catch (const ModelError&) {
      return false;
    }
  };
  if (!fits()) {
    values.fail("found " + std::to_string(tensor.count()) + " values, wanted as many as " +
                to_string(tensor.dims) + " has");
  }
  return tensor;
}

PlanInteger read_integer(const Cursor& at) {
  at.only({"node", "what", "input", "from", "to"});
  PlanInteger entry;
  entry.node = at.at("node").name();
  entry.what = at.at("what").name();
  if (at.has("input")) entry.input = small(at.at("input"), 0);
  entry.from = read_tensor(at.at("from"));
  entry.to = read_tensor(at.at("to"));
  if (entry.input < 0 && entry.to.floating() && entry.to.count() != 1) {
    at.at("to").wanted("integers, or one number: it is an attribute");
  }
  return entry;
}

PlanScale read_scale(const Cursor& at) {
  at.only({"node", "what", "input", "encodes", "now", "from", "to"});
  PlanScale entry;
  entry.change.node = at.at("node").name();
  entry.change.what = at.at("what").name();
  if (at.has("input")) entry.change.input = small(at.at("input"), 0);
  entry.encodes = at.at("encodes").text();
  entry.now = at.at("now").text();
  entry.change.from = read_tensor(at.at("from"));
  entry.change.to = read_tensor(at.at("to"));
  const HostTensor& to = entry.change.to;
  if (!to.floating() || to.count() != 1) at.at("to").wanted("one floating point number");
  return entry;
}

PlanCopy read_copy(const Cursor& at) {
  at.only({"tensor", "of", "consumer", "input"});
  return {at.at("tensor").name(), at.at("of").name(), at.at("consumer").name(),
          small(at.at("input"), 0)};
}

PlanZeros read_zeros(const Cursor& at) {
  at.only({"tensor", "smallest"});
  return {at.at("tensor").name(), at.at("smallest").integer(0, kMaxSize)};
}

std::string read_fingerprint(const Cursor& at) {
  const std::string digest = at.text();
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (digest.size() != 64 || !std::all_of(digest.begin(), digest.end(), is_hex)) {
    at.wanted("64 lower-case hexadecimal digits");
  }
  return digest;
}

Shape read_dims(const Cursor& at) {
  Shape dims;
  for (size_t i = 0; i < at.size(); ++i) dims.push_back(at[i].integer(0, kMaxSize));
  try {
    element_count(dims);
  } catch (const ModelError& error) {
    at.fail(error.what());
  }
  return dims;
}

PlanFold read_fold(const Cursor& at) {
  at.only({"tensor", "reason", "dtype", "dims", "sha256"});
  PlanFold fold{at.at("tensor").name(), at.at("reason").text()};
  if (!at.has("dtype")) return fold;
  fold.dtype = read_dtype(at.at("dtype"));
  fold.dims = read_dims(at.at("dims"));
  fold.sha256 = read_fingerprint(at.at("sha256"));
  return fold;
}

PlanMask read_mask(const Cursor& at) {
  at.only({"tensor", "dims", "sha256"});
  return {at.at("tensor").name(), read_dims(at.at("dims")), {}, read_fingerprint(at.at("sha256"))};
}

Constants read_constants(const Cursor& at) {
  const std::string name = at.text();
  if (name != "drop" && name != "exact") at.wanted("\"drop\" or \"exact\"");
  return name == "exact" ? Constants::kExact : Constants::kDrop;
}

KeptWhole read_kept_whole(const Cursor& at) {
  at.only({"axis", "reason"});
  return {at.at("axis").name(), at.at("reason").text()};
}

void read_source(const Cursor& at, Plan& plan) {
  at.only({"format", "sha256", "inputs"});
  plan.format = at.at("format").name();
  if (at.has("inputs")) {
    const Cursor inputs = at.at("inputs");
    for (size_t i = 0; i < inputs.size(); ++i) plan.inputs.push_back(inputs[i].text());
  }
  if (!at.has("sha256")) return;
  plan.sha256 = read_fingerprint(at.at("sha256"));
}

Json parse(std::string_view text, std::string_view file_name) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: …"
    const std::string_view what = error.what();
    const size_t prefix = what.find("] ");
    throw errors::bad_plan(file_name, {},
                           prefix == std::string_view::npos ? what : what.substr(prefix + 2));
  }
}

}  // namespace

Plan Plan::from_json(std::string_view text, std::string_view file_name) {
  const Json json = parse(text, file_name);
  const Cursor top(json, file_name);
  if (!json.is_object() || !top.has("parsimony_plan")) {
    top.fail("wanted an object with \"parsimony_plan\": is this a plan?");
  }
  if (top.at("parsimony_plan").integer(0, kMaxInt) != 1) {
    top.at("parsimony_plan").wanted("1: the plan comes from another version");
  }
  top.only({"parsimony_plan", "source", "blocks", "groups", "integers", "scales", "copies", "zeros",
            "folds", "constants", "masks", "kept_whole"});
  Plan plan;
  if (top.has("source")) read_source(top.at("source"), plan);
  plan.blocks = read_list(top, "blocks", read_block);
  top.at("groups");
  plan.groups = read_list(top, "groups", read_group);
  plan.integers = read_list(top, "integers", read_integer);
  plan.scales = read_list(top, "scales", read_scale);
  plan.copies = read_list(top, "copies", read_copy);
  plan.zeros = read_list(top, "zeros", read_zeros);
  plan.folds = read_list(top, "folds", read_fold);
  if (top.has("constants")) plan.constants = read_constants(top.at("constants"));
  plan.masks = read_list(top, "masks", read_mask);
  plan.kept_whole = read_list(top, "kept_whole", read_kept_whole);
  return plan;
}

}  // namespace parsimony
