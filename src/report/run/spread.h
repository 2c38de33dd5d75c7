// Computes the mean and spread of a figure over repeats.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace lockstep {

struct Spread {
  double mean = 0;
  double deviation = 0;  // sample standard deviation (n - 1); 0 for one value
  int count = 0;         // 0: unknown
};

inline Spread spread_of(const std::vector<double>& values) {
  Spread out{.count = static_cast<int>(values.size())};
  if (values.empty()) return out;
  const auto n = static_cast<double>(values.size());
  for (double value : values) out.mean += value / n;
  if (values.size() < 2) return out;
  double squares = 0;
  for (double value : values) squares += (value - out.mean) * (value - out.mean);
  out.deviation = std::sqrt(squares / (n - 1));
  return out;
}

// Returns "12.34 ± 0.56", "12.34" for one value, "-" for none. The spread has two significant
// digits and the mean as many decimal places; a mean without spread has four significant digits.
std::string spread_text(const Spread& spread);

}  // namespace lockstep
