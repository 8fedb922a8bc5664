// Sizes as a program writes them: numbers, or expressions with the number that they had when it was
// exported.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "parsimony/graph/model_editor.h"

namespace parsimony::torch_io::exported {

/// The number of {"as_int": 3} or {"as_expr": {"expr_str": "…", "hint": {"as_int": 3}}}.
int64_t hint_of(const nlohmann::ordered_json& size);

/// Changes the declared sizes and strides of a tensor; its dimensions keep their order in memory.
void resize(nlohmann::ordered_json& meta, const ShapeChange& change);

}  // namespace parsimony::torch_io::exported
