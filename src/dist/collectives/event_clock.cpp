#include "dist/collectives/event_clock.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace lockstep {
namespace {

const c10::Event& event_of(const DeviceClock::Mark& mark) {
  return *static_cast<const c10::Event*>(mark.get());
}

}  // namespace

DeviceClock::Mark EventClock::mark() {
  // Not PYTORCH_DEFAULT, whose events have no times.
  auto event = std::make_shared<c10::Event>(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  event->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return event;
}

bool EventClock::passed(const Mark& mark) const { return event_of(mark).query(); }

double EventClock::seconds_between(const Mark& first, const Mark& second) const {
  event_of(second).synchronize();
  return event_of(first).elapsedTime(event_of(second)) / 1000;  // from milliseconds
}

}  // namespace lockstep
