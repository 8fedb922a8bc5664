// Members of settings, each described once: the reader of files, the identity of a run, the schema,
// the command line and docs/guide/training.md have it from here.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "parsimony/base/json_reader.h"
#include "parsimony/configs/recipe.h"

namespace parsimony {

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

template <typename Settings>
struct Field {
  std::string_view key;
  std::variant<bool Settings::*, int Settings::*, uint64_t Settings::*, double Settings::*,
               std::string Settings::*, std::vector<double> Settings::*, WordMember<Settings>>
      member;
  Interval interval;         ///< of a number, also in a list
  std::string_view meaning;  ///< the part up to the first "; " or ". " is the short description
};

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

/// Reads the members that `object` has. @throws ConfigError
template <typename Settings>
void read_fields(const JsonReader& object, std::span<const Field<Settings>> fields,
                 Settings& settings) {
  for (const Field<Settings>& field : fields) {
    const auto value = object.find(field.key);
    if (!value) continue;
    const auto read = [&](const auto& member) {
      using Pointer = std::decay_t<decltype(member)>;
      if constexpr (std::is_same_v<Pointer, WordMember<Settings>>) {
        member.set(settings, value->word(member.words));
      } else if constexpr (std::is_same_v<Pointer, bool Settings::*>) {
        settings.*member = value->flag();
      } else if constexpr (std::is_same_v<Pointer, double Settings::*>) {
        settings.*member = value->number(field.interval);
      } else if constexpr (std::is_same_v<Pointer, std::string Settings::*>) {
        settings.*member = value->text();
      } else if constexpr (std::is_same_v<Pointer, std::vector<double> Settings::*>) {
        if (!value->is_list()) value->wanted("a list of numbers");
        for (const JsonReader number : value->list()) {
          (settings.*member).push_back(number.number(field.interval));
        }
      } else {
        const int number = value->small(static_cast<int>(field.interval.lowest));
        settings.*member = static_cast<std::decay_t<decltype(settings.*member)>>(number);
      }
    };
    std::visit(read, field.member);
  }
}

/// `"epochs":10,"batch":64`: every member, whatever its value; but no empty texts and lists.
template <typename Settings>
std::string json_members(std::span<const Field<Settings>> fields, const Settings& settings) {
  std::string text;
  for (const Field<Settings>& field : fields) {
    const auto is_empty = [&](const auto& member) {
      if constexpr (requires { (settings.*member).empty(); }) return (settings.*member).empty();
      return false;
    };
    if (std::visit(is_empty, field.member)) continue;
    const auto value = [&](const auto& member) -> std::string {
      using Pointer = std::decay_t<decltype(member)>;
      if constexpr (std::is_same_v<Pointer, WordMember<Settings>>) {
        return json_text(member.words[member.get(settings)]);
      } else if constexpr (std::is_same_v<Pointer, bool Settings::*>) {
        return settings.*member ? "true" : "false";
      } else if constexpr (std::is_same_v<Pointer, double Settings::*> ||
                           std::is_same_v<Pointer, std::string Settings::*>) {
        return json_text(settings.*member);
      } else if constexpr (std::is_same_v<Pointer, std::vector<double> Settings::*>) {
        std::string list;
        for (const double number : settings.*member) {
          list.append(list.empty() ? "[" : ",").append(json_text(number));
        }
        return list + "]";
      } else {
        return std::to_string(settings.*member);
      }
    };
    if (!text.empty()) text += ',';
    text.append(json_text(field.key)).append(":").append(std::visit(value, field.member));
  }
  return text;
}

}  // namespace parsimony
