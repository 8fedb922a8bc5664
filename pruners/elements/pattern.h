// Whether a tensor has an N:M pattern.
#pragma once

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/elements/contraction.h"
#include "parsimony/pruners/elements/rule.h"

namespace parsimony::elements {

/// Of every m neighbours along the input axis, counted from its start, at most n are not zero; at
/// each position of a kernel. A group that the axis cuts short may hold n as well.
/// @throws UnsupportedError for elements that are not numbers
bool has_pattern(const Weight& weight, const Contraction& contraction, NmPattern pattern);

}  // namespace parsimony::elements
