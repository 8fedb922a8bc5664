#include <re2/re2.h>

#include "parsimony/configs/errors.h"
#include "parsimony/configs/pattern_impl.h"

namespace parsimony {

namespace {

constexpr size_t kMostShown = 40;

RE2::Options options() {
  RE2::Options result;
  result.set_log_errors(false);
  return result;
}

}  // namespace

Pattern::Pattern(const std::string& text, std::string_view place)
    : regex_(std::make_shared<RE2>(text, options())) {
  if (regex_->ok()) return;
  const std::string shown = text.size() > kMostShown ? text.substr(0, kMostShown) + "…" : text;
  throw errors::bad_pattern(place, shown, regex_->error());
}

bool Pattern::matches(const std::string& name) const {
  return regex_->Match(name, 0, name.size(), RE2::ANCHOR_START, nullptr, 0);
}

}  // namespace parsimony
