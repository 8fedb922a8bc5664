// Parts shared by several reports.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "parsimony/api/prune_model.h"
#include "parsimony/report/explain.h"
#include "parsimony/report/inspect.h"
#include "parsimony/report/json_impl.h"
#include "parsimony/report/ledger.h"

namespace parsimony {

/// Whether T is U or const U: a struct is described for writing if it is const, else for reading.
template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

void describe(auto& json, Is<LedgerPoint::Phases> auto& phases) {
  for (const TrainingPhase& phase : kTrainingPhases) {
    json.or_zero(phase.name, phases.*phase.seconds);
  }
}

void describe(auto& json, Is<LedgerPoint::Layer> auto& layer) {
  json("name", layer.name)("op", layer.op)("before", layer.before)("after", layer.after);
}

void describe(auto& json, Is<UnprunedDim> auto& whole) {
  json("axis", whole.axis)("reason", whole.reason);
}

inline void describe(JsonWriter& json, const InputRow& input) {
  json("name", input.name)("shape", input.shape)("assumed", input.assumed);
}

void describe(JsonWriter& json, const DepthReport& report);
void describe(JsonWriter& json, const ScaleRow& row);

/// Renders a table; empty if there are no rows.
std::string scales_text(const std::vector<ScaleRow>& rows);

/// Text for a run of `prune`: the number of rows; with `all` the table, too.
std::string scales_text(const std::vector<ScaleRow>& rows, bool all);

}  // namespace parsimony
