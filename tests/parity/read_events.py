"""Prints as JSON what TensorBoard's own reader finds in a folder of event files."""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
events.Reload()
tags = events.Tags()
result = {
    "scalars": {
        tag: [[point.step, point.wall_time, point.value] for point in events.Scalars(tag)]
        for tag in tags["scalars"]
    },
    "texts": {
        tag: [
            [point.step, point.wall_time, [s.decode() for s in point.tensor_proto.string_val]]
            for point in events.Tensors(tag)
        ]
        for tag in tags["tensors"]
    },
    "plugins": {
        tag: events.SummaryMetadata(tag).plugin_data.plugin_name for tag in tags["tensors"]
    },
    "file_version": events.file_version,
}
json.dump(result, sys.stdout)
