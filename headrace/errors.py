"""Every error that Headrace raises.

HeadraceError
├── ConfigError              a setting has a value that is not allowed
├── TopologyError            a topology that cannot be built
├── SerializationError       bytes that cannot be read, or a value that cannot be written
├── TopicError               a topic that is missing, or not what it should be
│   ├── UnknownTopicError    there is no such topic
│   └── RecordsGoneError     records were deleted before they were read
└── StreamsError             something failed while records were processed
    ├── TaskError            a step failed on a record: names step, topic, partition, offset and key
    ├── SupersededError      the application was started again elsewhere: only the latest run may write
    ├── UnavailableError     no broker can be reached, none answers, or the cluster is not ready
    ├── ProcessorStateError  a store's state cannot be read, written or rebuilt
    └── InvalidStateStoreError   a store that does not exist, is closed, or is of another kind

Tests: `tests/test_public_surface.py`.
"""


class HeadraceError(Exception):
    """Base of all errors that Headrace raises on purpose."""


class ConfigError(HeadraceError):
    """A setting has a value that is not allowed."""


class TopologyError(HeadraceError):
    """A topology that cannot be built."""


class SerializationError(HeadraceError):
    """Bytes that cannot be read, or a value that cannot be written."""


class TopicError(HeadraceError):
    """A topic that is missing, or not what it should be."""


class UnknownTopicError(TopicError):
    """There is no such topic."""


class RecordsGoneError(TopicError):
    """Records were deleted before they were read, or their topic was."""


class StreamsError(HeadraceError):
    """Something failed while records were processed."""


class TaskError(StreamsError):
    """A step failed on a record; the message names step, topic, partition, offset and key."""


class SupersededError(StreamsError):
    """The application was started again elsewhere, or forgotten: only its latest run may write."""


class UnavailableError(StreamsError):
    """No broker can be reached, none answers, or the cluster is not ready: an application waits for it."""


class ProcessorStateError(StreamsError):
    """A store's state cannot be read, written or rebuilt."""


class InvalidStateStoreError(StreamsError):
    """A store that does not exist, is closed, or is of another kind than asked for."""
