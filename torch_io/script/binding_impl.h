// What a value of a jit graph stands for while the graph is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony::torch_io::script {

struct Object;  // a module instance: interpreter_impl.h

/// Where something is written in the jit graph: input `input` of call `call`, or element `item` of
/// the list that stands there.
struct Place {
  int call = kNone;
  int input = kNone;
  int item = kNone;

  bool known() const { return call != kNone; }
  bool operator==(const Place&) const = default;
};

enum class Kind : uint8_t {
  kUnknown,  ///< something that only the program's run tells
  kNone,
  kInt,
  kFloat,
  kBool,
  kString,
  kTensor,  ///< `value` of the graph
  kNumber,  ///< a number at run time: a size, or what is computed from sizes; `value`, of rank 0
  kList,    ///< a list or a tuple
  kObject,
};

/// `text` of a list that holds the keys and values of a dictionary by turns.
inline constexpr const char* kDictionary = "dictionary";

struct Binding {
  Kind kind = Kind::kUnknown;
  int64_t integer = 0;  ///< kInt, kBool
  double number = 0;    ///< kFloat
  std::string text = {};
  ValueId value = parsimony::kNone;
  std::shared_ptr<std::vector<Binding>> items = {};  ///< shared: lists may grow
  std::shared_ptr<const Object> object = {};

  bool is(Kind k) const { return kind == k; }
  /// A number that is known while reading.
  bool fixed_number() const {
    return kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kBool;
  }
  bool is_number() const { return fixed_number() || kind == Kind::kNumber; }
  double as_double() const { return kind == Kind::kFloat ? number : static_cast<double>(integer); }

  static Binding none() { return {.kind = Kind::kNone}; }
  static Binding of_int(int64_t v) { return {.kind = Kind::kInt, .integer = v}; }
  static Binding of_bool(bool v) { return {.kind = Kind::kBool, .integer = v ? 1 : 0}; }
  static Binding of_float(double v) { return {.kind = Kind::kFloat, .number = v}; }
  static Binding of_text(std::string v) { return {.kind = Kind::kString, .text = std::move(v)}; }
  static Binding tensor(ValueId v) { return {.kind = Kind::kTensor, .value = v}; }
  static Binding run_time(ValueId v) { return {.kind = Kind::kNumber, .value = v}; }
  static Binding list(std::vector<Binding> v) {
    return {.kind = Kind::kList, .items = std::make_shared<std::vector<Binding>>(std::move(v))};
  }
};

}  // namespace parsimony::torch_io::script
