#include "parsimony/configs/errors.h"

namespace parsimony::errors {

namespace {

std::string word_in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

std::string at(std::string_view place) { return std::string(place) + ": "; }

/// "a", "b" and "c"
std::string enumerate(std::span<const std::string> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += word_in_quotes(words[i]);
  }
  return text;
}

}  // namespace

ConfigError wrong_type(std::string_view place, std::string_view found, std::string_view wanted) {
  return ConfigError(at(place) + "found " + std::string(found) + ", wanted " + std::string(wanted));
}

UnsupportedError refused(std::string_view place, std::string_view why) {
  return UnsupportedError(at(place) + std::string(why));
}

ConfigError unknown_word(std::string_view place, std::string_view word,
                         std::span<const std::string_view> known) {
  return ConfigError(at(place) + "found " + word_in_quotes(word) + ", wanted " + one_of(known));
}

ConfigError bad_loss(std::string_view text, std::span<const std::string_view> known) {
  return ConfigError("loss: found " + word_in_quotes(text) + ", wanted " + one_of(known) +
                     "; with options behind it (huber:delta=0.5, cross_entropy:ignore=255, "
                     "ctc:blank=0, weight=2), or for each output its own: "
                     "boxes=huber,scores=cross_entropy");
}

ConfigError out_of_range(std::string_view place, std::string_view value, std::string_view range) {
  return ConfigError(at(place) + "found " + std::string(value) + ", wanted a number in " +
                     std::string(range));
}

ConfigError contradiction(std::string_view place, std::string_view why) {
  return ConfigError(at(place) + std::string(why));
}

ConfigError unknown_type(std::string_view place, std::string_view type,
                         std::span<const std::string> known) {
  const std::string hint = did_you_mean(type, known);
  return ConfigError(at(place) + "unknown op type " + word_in_quotes(type) +
                     (hint.empty() ? "; known are " + enumerate(known) : "." + hint));
}

ConfigError absent_type(std::string_view place, std::string_view type,
                        std::span<const std::string> present) {
  return ConfigError(at(place) + "this network has no layer of type " + word_in_quotes(type) +
                     (present.empty() ? ", nor any other layer that can be pruned"
                                      : "; it has " + enumerate(present)));
}

ConfigError unknown_name(std::string_view place, std::string_view name,
                         std::span<const std::string> known) {
  return ConfigError(at(place) + "this network has no layer " + word_in_quotes(name) + "." +
                     did_you_mean(name, known));
}

ConfigError not_a_layer(std::string_view place, std::string_view name, std::string_view op) {
  return ConfigError(at(place) + word_in_quotes(name) + " is a " + std::string(op) +
                     ", which is not pruned by itself; name the layers around it");
}

ConfigError bad_pattern(std::string_view place, std::string_view pattern, std::string_view why) {
  return ConfigError(at(place) + "pattern " + word_in_quotes(pattern) + ": " + std::string(why));
}

ConfigError unmatched_pattern(std::string_view place, std::string_view pattern) {
  return ConfigError(at(place) + "pattern " + word_in_quotes(pattern) +
                     " matches no layer of this network");
}

ConfigError unmatched_part(std::string_view place, std::string_view part) {
  return ConfigError(at(place) + "no layer has " + word_in_quotes(part) + " in its name");
}

ConfigError selects_nothing(std::string_view place) {
  return ConfigError(at(place) +
                     "no layer is selected; types and names must hold for the same layer");
}

ConfigError other_latency(std::string_view file, std::string_view key, std::string_view found,
                          std::string_view wanted) {
  return ConfigError(at(file) + word_in_quotes(key) + ": found " + std::string(found) +
                     ", wanted " + std::string(wanted) +
                     "; times hold for one machine, engine and number of threads: name another "
                     "file");
}

ConfigError bad_latency_table(std::string_view place) {
  return ConfigError(at(place) +
                     "wanted ascending widths x and y, and a time for each pair of them");
}

}  // namespace parsimony::errors
