// Included first when clang-tidy 14 analyses libtorch code: clang 14 instantiates constexpr members
// of a std::vector while its elements are incomplete, which c10::IValue's are.
#pragma once

#include <string>

#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_bits  // declared as constexpr elsewhere
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr
