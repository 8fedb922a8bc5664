// Members of settings, each described once: readers and writers of files, the identity of a run,
// the schema, the command line, Python's keywords and the tables of the guide have it from here.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "parsimony/base/json_reader.h"
#include "parsimony/base/parse.h"
#include "parsimony/configs/recipe.h"

namespace parsimony {

/// The interval of unsigned integers of 64 bits, which need not fit an int.
inline constexpr Interval kAnyUnsigned{.lowest = 0, .highest = 0x1p64, .with_highest = false};

/// An enumerated member: the enumerators' names in order.
template <typename Settings>
struct WordMember {
  std::span<const std::string_view> words;
  size_t (*get)(const Settings&);
  void (*set)(Settings&, size_t);
};

template <typename Settings, typename Value>
Settings owner_of(Value Settings::*);

template <auto kMember>
constexpr auto word(std::span<const std::string_view> words) {
  using Owner = decltype(owner_of(kMember));
  using Word = std::remove_cvref_t<decltype(std::declval<Owner>().*kMember)>;
  return WordMember<Owner>{
      words, [](const Owner& settings) { return static_cast<size_t>(settings.*kMember); },
      [](Owner& settings, size_t index) { settings.*kMember = static_cast<Word>(index); }};
}

/// A flag that stands for one value of a member that has several.
template <typename Settings>
struct FlagMember {
  bool (*get)(const Settings&);
  void (*set)(Settings&);
  std::string_view excludes = {};  ///< another flag
};

/// An integer that sets several members.
template <typename Settings>
struct NumberMember {
  int (*get)(const Settings&);
  void (*set)(Settings&, int);
};

/// A member that is said in words, or partly: "auto" or a number. `set` throws ConfigError.
template <typename Settings>
struct TextMember {
  std::string (*get)(const Settings&);  ///< empty: nothing is said
  void (*set)(Settings&, const std::string& text, std::string_view place);
};

/// A list member whose elements are said in words, as TextMember's. `set` throws ConfigError.
template <typename Settings>
struct TextsMember {
  std::vector<std::string> (*get)(const Settings&);
  void (*set)(Settings&, const std::vector<std::string>& texts, std::string_view place);
};

template <typename Settings>
struct Field {
  std::string_view key;
  std::variant<bool Settings::*, int Settings::*, int64_t Settings::*, uint64_t Settings::*,
               double Settings::*, std::optional<int64_t> Settings::*,
               std::optional<double> Settings::*, std::string Settings::*,
               std::vector<std::string> Settings::*, std::vector<double> Settings::*,
               WordMember<Settings>, FlagMember<Settings>, NumberMember<Settings>,
               TextMember<Settings>, TextsMember<Settings>>
      member;
  Interval interval = {};    ///< of a number, also in a list
  std::string_view meaning;  ///< the part up to the first "; " or ". " is the short description
  // Details of the options of `prune`, and of Python's keywords:
  std::string_view value = {};       ///< what the help calls it: "N"
  std::string_view group = {};       ///< in the help; empty: none
  char separator = 0;                ///< of a list's elements; 0: each is an argument of its own
  bool negated = false;              ///< a flag that switches the member off
  bool as_share = false;             ///< a number that may be given in percent
  bool only_in_files = false;        ///< and for programs: the command has no such option
  std::string (*names)() = nullptr;  ///< stand in `meaning` in place of "{}"
  std::string (*fault)(const std::string& text) = nullptr;  ///< of a text; empty: none
};

/// "--weight-decay" of "weight_decay".
std::string option_of(std::string_view key);

/// Returns the field's meaning, with the names in place of "{}".
template <typename Settings>
std::string help_of(const Field<Settings>& field) {
  std::string text(field.meaning);
  if (field.names != nullptr) text.replace(text.find("{}"), 2, field.names());
  return text;
}

/// Stands for a member of any type.
struct Anything {
  template <typename Member>
  operator Member() const;  // NOLINT
};

/// The number of members of an aggregate, found by brace initialisation.
template <typename Struct, typename... Given>
consteval size_t member_count() {
  if constexpr (requires { Struct{Given{}..., Anything{}}; }) {
    return member_count<Struct, Given..., Anything>();
  } else {
    return sizeof...(Given);
  }
}

/// All members that tables describe, in the order of the struct.
std::span<const Field<TrainSettings>> train_fields();
std::span<const Field<PruneSettings>> prune_fields();  ///< all but penalty, config and text
std::span<const Field<PenaltySettings>> penalty_fields();
std::span<const Field<ScheduleSetting>> schedule_fields();

template <typename Settings>
std::vector<std::string> keys_of(std::span<const Field<Settings>> fields) {
  std::vector<std::string> keys;
  for (const Field<Settings>& field : fields) keys.emplace_back(field.key);
  return keys;
}

/// The index of the keyword. @throws ConfigError
size_t word_in(std::span<const std::string_view> words, std::string_view text,
               std::string_view place);

/// The text, or the number as it is written. @throws as JsonReader does
std::string text_or_number(const JsonReader& value);

inline int64_t lowest_integer(const Interval& interval) {
  return static_cast<int64_t>(interval.lowest) + (interval.with_lowest ? 0 : 1);
}

inline int small_in(const JsonReader& value, const Interval& interval) {
  constexpr int kMost = std::numeric_limits<int>::max();
  return value.small(static_cast<int>(lowest_integer(interval)),
                     interval.highest < kMost ? static_cast<int>(interval.highest) : kMost);
}

/// "40%": the shortest text near `percent` that `means` what is expected.
std::string percentage(long double percent, const std::function<bool(std::string_view)>& means);

/// Returns the fault of a share, 0.5 or 50%, that must lie in the interval; empty if there is none.
std::string share_fault(std::string_view text, const Interval& interval);

/// Reads one member. @throws ConfigError
template <typename Settings>
void read_field(const JsonReader& value, const Field<Settings>& field, Settings& settings) {
  const auto elements = [&](std::string_view expected, const auto& take) {
    if (!value.is_list()) value.expected(expected);
    for (const JsonReader element : value.list()) take(element);
  };
  const auto text = [&](std::string given) {
    const std::string fault = field.fault != nullptr ? field.fault(given) : std::string();
    if (!fault.empty()) value.fail(fault);
    return given;
  };
  const auto number = [&] {
    if (!field.as_share || !value.is_text()) return value.number(field.interval);
    const std::string fault = share_fault(value.text(), field.interval);
    if (!fault.empty()) value.fail(fault);
    return share_of(value.text()).value();
  };
  const auto read = [&](const auto& member) {
    using Pointer = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<Pointer, WordMember<Settings>>) {
      member.set(settings, value.word(member.words));
    } else if constexpr (std::is_same_v<Pointer, FlagMember<Settings>>) {
      if (value.flag()) member.set(settings);
    } else if constexpr (std::is_same_v<Pointer, NumberMember<Settings>>) {
      member.set(settings, small_in(value, field.interval));
    } else if constexpr (std::is_same_v<Pointer, TextMember<Settings>>) {
      member.set(settings, text(text_or_number(value)), value.place());
    } else if constexpr (std::is_same_v<Pointer, TextsMember<Settings>>) {
      std::vector<std::string> texts;
      elements("a list of strings", [&](const JsonReader& one) { texts.push_back(one.text()); });
      member.set(settings, texts, value.place());
    } else {
      auto& to = settings.*member;
      using Type = std::decay_t<decltype(to)>;
      if constexpr (std::is_same_v<Type, bool>) {
        to = value.flag() != field.negated;
      } else if constexpr (std::is_same_v<Type, double> ||
                           std::is_same_v<Type, std::optional<double>>) {
        to = number();
      } else if constexpr (std::is_same_v<Type, std::string>) {
        to = text(value.text());
      } else if constexpr (std::is_same_v<Type, std::vector<std::string>>) {
        to.clear();
        elements("a list of strings", [&](const JsonReader& one) { to.push_back(one.text()); });
      } else if constexpr (std::is_same_v<Type, std::vector<double>>) {
        to.clear();
        elements("a list of numbers",
                 [&](const JsonReader& one) { to.push_back(one.number(field.interval)); });
      } else if constexpr (std::is_same_v<Type, int64_t> ||
                           std::is_same_v<Type, std::optional<int64_t>>) {
        to = value.integer(lowest_integer(field.interval), std::numeric_limits<int64_t>::max());
      } else if (field.interval.highest == kAnyUnsigned.highest) {
        to = static_cast<Type>(value.unsigned_integer());
      } else {
        to = static_cast<Type>(small_in(value, field.interval));
      }
    }
  };
  std::visit(read, field.member);
}

/// Reads the members that `object` has. @throws ConfigError
template <typename Settings>
void read_fields(const JsonReader& object, std::span<const Field<Settings>> fields,
                 Settings& settings) {
  for (const Field<Settings>& field : fields) {
    if (const auto value = object.find(field.key)) read_field(*value, field, settings);
  }
}

/// The member as JSON; empty for texts and lists without anything in them, and for flags that are
/// not set.
template <typename Settings>
std::string json_value(const Field<Settings>& field, const Settings& settings) {
  const auto list = [](const auto& values) {
    std::string text;
    for (const auto& value : values) text.append(text.empty() ? "[" : ",").append(json_text(value));
    return text.empty() ? text : text + "]";
  };
  const auto text = [](const std::string& value) {
    return value.empty() ? std::string() : json_text(std::string_view(value));
  };
  const auto write = [&](const auto& member) -> std::string {
    using Pointer = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<Pointer, WordMember<Settings>>) {
      return json_text(member.words[member.get(settings)]);
    } else if constexpr (std::is_same_v<Pointer, FlagMember<Settings>>) {
      return member.get(settings) ? "true" : "";
    } else if constexpr (std::is_same_v<Pointer, NumberMember<Settings>>) {
      return std::to_string(member.get(settings));
    } else if constexpr (std::is_same_v<Pointer, TextMember<Settings>>) {
      return text(member.get(settings));
    } else if constexpr (std::is_same_v<Pointer, TextsMember<Settings>>) {
      return list(member.get(settings));
    } else {
      const auto& value = settings.*member;
      using Type = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Type, bool>) {
        return value != field.negated ? "true" : "false";
      } else if constexpr (std::is_same_v<Type, double>) {
        return json_text(value);
      } else if constexpr (std::is_same_v<Type, std::optional<double>>) {
        return value ? json_text(*value) : "";
      } else if constexpr (std::is_same_v<Type, std::optional<int64_t>>) {
        return value ? std::to_string(*value) : "";
      } else if constexpr (std::is_same_v<Type, std::string>) {
        return text(value);
      } else if constexpr (std::is_integral_v<Type>) {
        return std::to_string(value);
      } else {
        return list(value);
      }
    }
  };
  return std::visit(write, field.member);
}

/// `"epochs":10,"batch":64`: every member that json_value() gives; without those that are as in
/// `usual`, if that is given.
template <typename Settings>
std::string json_members(std::span<const Field<Settings>> fields, const Settings& settings,
                         const Settings* usual = nullptr) {
  std::string text;
  for (const Field<Settings>& field : fields) {
    const std::string value = json_value(field, settings);
    if (value.empty() || (usual != nullptr && value == json_value(field, *usual))) continue;
    text.append(text.empty() ? "" : ",").append(json_text(field.key)).append(":").append(value);
  }
  return text;
}

}  // namespace parsimony
