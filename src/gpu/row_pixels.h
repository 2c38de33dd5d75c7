// Defines batch norm (Ioffe and Szegedy 2015) over rows of pixels, and sums of columns, as what a
// team does to a block of rows (row_kernels.h).
#pragma once

#include <cmath>

#include "gpu/gpu_pixel_kernels.h"
#include "gpu/row_math.h"

namespace lockstep {
namespace detail {
namespace gpu_rows {

inline constexpr int64_t kRoom = kBlockSlots * 2 * kGroupedChannels;  // numbers of a team's room()

// Neighbouring channels of a pixel, which a GPU reads in one or two instructions.
template <class T, int64_t kCount>
struct alignas(sizeof(T) * kCount) ChannelGroup {
  T of[kCount];

  LOCKSTEP_ANYWHERE static ChannelGroup at(const T* from) {
    return *reinterpret_cast<const ChannelGroup*>(from);
  }
  LOCKSTEP_ANYWHERE void store(T* to) const { *reinterpret_cast<ChannelGroup*>(to) = *this; }
};

// What one thread of a block works on: a group of channels, in the pixels of a part.
struct PixelPart {
  int64_t channel, begin, end;  // the group's first channel; pixels [begin, end)
  int64_t slot;                 // among the threads of the block
};

// The groups of channels that the threads of a block have at a time, and how many there are.
template <int64_t kCount>
struct GroupsAtATime {
  LOCKSTEP_ANYWHERE GroupsAtATime(const PixelBlocks& blocks, int64_t first_group)
      : first(first_group),
        count(blocks.channels / kCount - first_group < kBlockSlots
                  ? blocks.channels / kCount - first_group
                  : kBlockSlots) {}
  int64_t first, count;
};

// Calls f(part) for each part that the thread `rank` of the team of block `block` has, and
// after(groups) when all of the team are done with some groups.
template <int64_t kCount, class Team, class F, class After>
LOCKSTEP_ANYWHERE inline void for_parts(const PixelBlocks& blocks, int64_t block, const Team& team,
                                        const F& f, const After& after) {
  for (int64_t first = 0; first < blocks.channels / kCount; first += kBlockSlots) {
    const GroupsAtATime<kCount> groups(blocks, first);
    for (int64_t i = team.rank(); i < groups.count * blocks.parts; i += team.size()) {
      const int64_t part = block * blocks.parts + i / groups.count;
      const int64_t begin = part * blocks.part_pixels, end = begin + blocks.part_pixels;
      f(PixelPart{(first + i % groups.count) * kCount, begin,
                  end < blocks.pixels ? end : blocks.pixels, i});
    }
    after(groups);
  }
}

// Calls f.operator()<channels of a group>().
template <class F>
LOCKSTEP_ANYWHERE inline void with_group(const PixelBlocks& blocks, const F& f) {
  if (blocks.grouped) {
    f.template operator()<kGroupedChannels>();
  } else {
    f.template operator()<1>();
  }
}

// Two sums over the pixels of a part, for each channel of a group.
template <int64_t kCount>
struct PartSums {
  float first[kCount] = {}, second[kCount] = {};
};

// Makes the sums of a block of those that sums_of(part) returns, in the order of the parts.
template <int64_t kCount, class Team, class SumsOf>
LOCKSTEP_ANYWHERE inline void sum_block(const PixelBlocks& blocks, int64_t block, const Team& team,
                                        const SumsOf& sums_of) {
  float* room =
      team.room();  // [2 * kCount][kBlockSlots]: neighbouring threads, neighbouring numbers
  for_parts<kCount>(
      blocks, block, team,
      [&](const PixelPart& part) {
        const PartSums<kCount> sums = sums_of(part);
        for (int64_t j = 0; j < kCount; ++j) {
          room[j * kBlockSlots + part.slot] = sums.first[j];
          room[(kCount + j) * kBlockSlots + part.slot] = sums.second[j];
        }
      },
      [&](const GroupsAtATime<kCount>& groups) {
        team.sync();
        for (int64_t i = team.rank(); i < groups.count * 2 * kCount; i += team.size()) {
          const int64_t group = i % groups.count, number = i / groups.count;
          float sum = 0;
          for (int64_t part = 0; part < blocks.parts; ++part) {
            sum += room[number * kBlockSlots + part * groups.count + group];
          }
          blocks.sums[(block * 2 + number / kCount) * blocks.channels +
                      (groups.first + group) * kCount + number % kCount] = sum;
        }
        team.sync();  // before the room is used again
      });
}

struct PixelSumsOfBlock {
  static constexpr bool kUsesRoom = true;
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const PixelSumsArgs<T>& a, int64_t block,
                                    const Team& team) const {
    with_group(a.blocks, [&]<int64_t kCount>() {
      using Group = ChannelGroup<T, kCount>;
      sum_block<kCount>(a.blocks, block, team, [&](const PixelPart& part) {
        PartSums<kCount> sums;
        float origin[kCount] = {};
        for (int64_t j = 0; j < kCount && a.origin != nullptr; ++j) {
          origin[j] = to_float(a.origin[part.channel + j]);
        }
        for (int64_t pixel = part.begin; pixel < part.end; ++pixel) {
          const Group x = Group::at(a.x + pixel * a.blocks.channels + part.channel);
          for (int64_t j = 0; j < kCount; ++j) {
            const float distance = to_float(x.of[j]) - origin[j];
            sums.first[j] += distance;
            if (a.origin != nullptr) sums.second[j] += distance * distance;
          }
        }
        return sums;
      });
    });
  }
};

// What a batch norm does to the channels of a group.
template <int64_t kCount>
struct ChannelNorms {
  template <class Args>
  LOCKSTEP_ANYWHERE ChannelNorms(const Args& a, int64_t channel) {
    for (int64_t j = 0; j < kCount; ++j) {
      mean[j] = a.mean[channel + j];
      scale[j] = a.scale[channel + j];
      bias[j] = a.bias[channel + j];
    }
  }
  float mean[kCount], scale[kCount], bias[kCount];
};

struct PixelNormForward {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const PixelNormArgs<T>& a, int64_t block,
                                    const Team& team) const {
    const BatchNormArgs<T>& n = a.norm;
    with_group(a.blocks, [&]<int64_t kCount>() {
      using Group = ChannelGroup<T, kCount>;
      for_parts<kCount>(
          a.blocks, block, team,
          [&](const PixelPart& part) {
            const ChannelNorms<kCount> norms(n, part.channel);
            for (int64_t pixel = part.begin; pixel < part.end; ++pixel) {
              const int64_t at = pixel * n.channels + part.channel;
              const Group x = Group::at(n.x + at);
              const Group residual = n.residual != nullptr ? Group::at(n.residual + at) : x;
              Group y;
              for (int64_t j = 0; j < kCount; ++j) {
                float v = (to_float(x.of[j]) - norms.mean[j]) * norms.scale[j] + norms.bias[j];
                if (n.residual != nullptr) v += to_float(residual.of[j]);
                if (n.relu) v = v < 0 ? 0.0f : v;  // a NaN passes through
                y.of[j] = from_float<T>(v);
              }
              y.store(n.y + at);
            }
          },
          [](const GroupsAtATime<kCount>&) {});
    });
  }
};

// Of the channels of a group in one pixel: x - mean, and g, the gradient behind the ReLU.
template <class T, int64_t kCount>
struct BackwardPixel {
  template <class Args>
  LOCKSTEP_ANYWHERE BackwardPixel(const Args& a, const ChannelNorms<kCount>& norms, int64_t at) {
    using Group = ChannelGroup<T, kCount>;
    const bool reads_y = a.mask.relu && a.mask.y != nullptr;
    const Group x = Group::at(a.x + at), d_y = Group::at(a.mask.d_y + at);
    const Group y = reads_y ? Group::at(a.mask.y + at) : d_y;
    for (int64_t j = 0; j < kCount; ++j) {
      distance[j] = to_float(x.of[j]) - norms.mean[j];
      const float v = reads_y ? to_float(y.of[j]) : distance[j] * norms.scale[j] + norms.bias[j];
      g[j] = !a.mask.relu || v > 0 ? to_float(d_y.of[j]) : 0.0f;
    }
  }
  float distance[kCount], g[kCount];
};

struct PixelNormBackwardSums {
  static constexpr bool kUsesRoom = true;
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const PixelBackwardSumsArgs<T>& a, int64_t block,
                                    const Team& team) const {
    const BatchNormBackwardSumsArgs<T>& n = a.norm;
    with_group(a.blocks, [&]<int64_t kCount>() {
      sum_block<kCount>(a.blocks, block, team, [&](const PixelPart& part) {
        PartSums<kCount> sums;
        const ChannelNorms<kCount> norms(n, part.channel);
        for (int64_t pixel = part.begin; pixel < part.end; ++pixel) {
          const int64_t at = pixel * n.channels + part.channel;
          const BackwardPixel<T, kCount> in(n, norms, at);
          ChannelGroup<T, kCount> g;
          for (int64_t j = 0; j < kCount; ++j) {
            sums.first[j] += in.g[j];
            sums.second[j] += in.g[j] * in.distance[j];
            g.of[j] = from_float<T>(in.g[j]);
          }
          if (n.g != nullptr) g.store(n.g + at);
        }
        return sums;
      });
    });
  }
};

struct PixelNormBackward {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const PixelBackwardArgs<T>& a, int64_t block,
                                    const Team& team) const {
    const BatchNormBackwardArgs<T>& n = a.norm;
    with_group(a.blocks, [&]<int64_t kCount>() {
      for_parts<kCount>(
          a.blocks, block, team,
          [&](const PixelPart& part) {
            const ChannelNorms<kCount> norms(n, part.channel);
            float slope[kCount], offset[kCount];
            for (int64_t j = 0; j < kCount; ++j) {
              slope[j] = n.slope[part.channel + j];
              offset[j] = n.offset[part.channel + j];
            }
            for (int64_t pixel = part.begin; pixel < part.end; ++pixel) {
              const int64_t at = pixel * n.channels + part.channel;
              const BackwardPixel<T, kCount> in(n, norms, at);
              ChannelGroup<T, kCount> d_x;
              for (int64_t j = 0; j < kCount; ++j) {
                d_x.of[j] =
                    from_float<T>(norms.scale[j] * in.g[j] + slope[j] * in.distance[j] + offset[j]);
              }
              d_x.store(n.d_x + at);
            }
          },
          [](const GroupsAtATime<kCount>&) {});
    });
  }
};

// Adds up the sums of all blocks for one channel.
struct ChannelSums {
  template <class Team>
  LOCKSTEP_ANYWHERE ChannelSums(const float* sums, int64_t count, int64_t channels, int64_t channel,
                                const Team& team) {
    for (int64_t block = team.rank(); block < count; block += team.size()) {
      first += static_cast<double>(sums[block * 2 * channels + channel]);
      second += static_cast<double>(sums[(block * 2 + 1) * channels + channel]);
    }
    first = team.sum(first);
    second = team.sum(second);
  }
  double first = 0, second = 0;
};

struct ChannelTotals {
  static constexpr bool kSmallTeam = true;
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const ChannelTotalsArgs<T>& a, int64_t channel,
                                    const Team& team) const {
    const int64_t channels = a.blocks.channels;
    ChannelSums sums(a.blocks.sums, a.blocks.count, channels, channel, team);
    if (team.rank() != 0) return;
    if (a.origin != nullptr) {
      const auto pixels = static_cast<double>(a.blocks.pixels);
      const auto origin = static_cast<double>(to_float(a.origin[channel]));
      sums.second += origin * (2 * sums.first + origin * pixels);
      sums.first += origin * pixels;
      if (channel == 0) a.totals[2 * channels] = pixels;
    }
    a.totals[channel] = sums.first;
    a.totals[channels + channel] = sums.second;
  }
};

struct AddTotals {
  static constexpr bool kSmallTeam = true;
  template <class Team>
  LOCKSTEP_ANYWHERE void operator()(const AddTotalsArgs& a, int64_t channel,
                                    const Team& team) const {
    const ChannelSums sums(a.sums, a.count, a.channels, channel, team);
    if (team.rank() != 0) return;
    if (a.first != nullptr) a.first[channel] += static_cast<float>(sums.first);
    if (a.second != nullptr) a.second[channel] += static_cast<float>(sums.second);
  }
};

struct BatchNormMoments {
  LOCKSTEP_ANYWHERE void operator()(const BatchNormMomentsArgs& a, int64_t c) const {
    auto mean = static_cast<double>(a.running_mean[c]);
    auto variance = static_cast<double>(a.running_variance[c]);
    if (a.totals != nullptr) {
      const double count = a.totals[2 * a.channels], m = a.momentum;
      const double kept_mean = (1 - m) * mean, kept_variance = (1 - m) * variance;
      mean = a.totals[c] / count;
      const double squares = a.totals[a.channels + c] - mean * a.totals[c];
      variance = squares > 0 ? squares / count : 0;
      a.running_mean[c] = static_cast<float>(kept_mean + m * mean);
      const double unbiased = variance * count / (count - 1);
      a.running_variance[c] = static_cast<float>(kept_variance + m * unbiased);
    }
    const double inverse = 1 / sqrt(variance + a.epsilon);
    a.mean[c] = static_cast<float>(mean);
    a.rstd[c] = static_cast<float>(inverse);
    a.scale[c] = static_cast<float>(inverse * static_cast<double>(a.weight[c]));
  }
};

struct BatchNormTerms {
  LOCKSTEP_ANYWHERE void operator()(const BatchNormTermsArgs& a, int64_t c) const {
    const auto rstd = static_cast<double>(a.rstd[c]);
    if (a.d_weight != nullptr) {
      a.d_weight[c] += static_cast<float>(a.own[a.channels + c] * rstd);
    }
    if (a.d_bias != nullptr) a.d_bias[c] += static_cast<float>(a.own[c]);
    a.slope[c] = a.offset[c] = 0;
    if (a.count == nullptr) return;
    const double s = -static_cast<double>(a.scale[c]) / *a.count;
    a.slope[c] = static_cast<float>(s * rstd * rstd * a.all[a.channels + c]);
    a.offset[c] = static_cast<float>(s * a.all[c]);
  }
};

}  // namespace gpu_rows
}  // namespace detail
}  // namespace lockstep
