// The words of files of rules.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "parsimony/graph/operators/schema.h"

namespace parsimony::rules {

template <typename Value>
using Word = std::pair<std::string_view, Value>;

inline constexpr std::array<Word<ZeroBehaviour>, 9> kZeroWords = {
    {{"constant", ZeroBehaviour::kConstant},
     {"first", ZeroBehaviour::kFirst},
     {"normalised", ZeroBehaviour::kNormalised},
     {"product", ZeroBehaviour::kProduct},
     {"quotient", ZeroBehaviour::kQuotient},
     {"shifted", ZeroBehaviour::kShifted},
     {"undefined", ZeroBehaviour::kUndefined},
     {"zero", ZeroBehaviour::kZero},
     {"zeros", ZeroBehaviour::kZeros}}};

inline constexpr std::array<Word<ResultType>, 5> kResultWords = {
    {{"bool", ResultType::kBool},
     {"int64", ResultType::kInt64},
     {"of-first", ResultType::kOfFirst},
     {"of-second", ResultType::kOfSecond},
     {"second-is-int64", ResultType::kSecondIsInt64}}};

inline constexpr std::array<Word<LinearKind>, 7> kLinearWords = {
    {{"attention", LinearKind::kAttention},
     {"contraction", LinearKind::kContraction},
     {"convolution", LinearKind::kConvolution},
     {"lookup", LinearKind::kLookup},
     {"matrix-product", LinearKind::kMatrixProduct},
     {"recurrence", LinearKind::kRecurrence},
     {"transposed-convolution", LinearKind::kTransposedConvolution}}};

// Those about shapes and lists belong to operators with functions of their own.
inline constexpr std::array<Word<Trait>, 17> kTraitWords = {{{"adds", kAdds},
                                                             {"attends", kAttends},
                                                             {"chooses", kChooses},
                                                             {"copies", kCopies},
                                                             {"divides", kDivides},
                                                             {"draws", kDraws},
                                                             {"homogeneous", kHomogeneous},
                                                             {"likelihoods", kLikelihoods},
                                                             {"multiplies", kMultiplies},
                                                             {"pads", kPads},
                                                             {"pairs", kPairs},
                                                             {"permutes", kPermutes},
                                                             {"probabilities", kProbabilities},
                                                             {"reads-integers", kReadsIntegers},
                                                             {"rectifies", kRectifies},
                                                             {"reduces", kReduces},
                                                             {"sums", kSums}}};

}  // namespace parsimony::rules
