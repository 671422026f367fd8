"""Changes to Spark's JVM while it runs."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

_LOCAL_FILES = """
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawLocalFileSystem() {
            public void setPermission(Path path, FsPermission permission) throws java.io.IOException {
                if (permission.getStickyBit()) {
                    super.setPermission(path, permission);
                } else {
                    String allowed = permission.toString();
                    Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(allowed));
                }
            }
        });
    }
}
"""


def log_uncaught_exceptions(context: SparkContext) -> None:
    """Send exceptions that end a thread to Spark's log. Java would print them, for example if a batch is cancelled."""
    handler = _class(context, "org.apache.spark.util.SparkUncaughtExceptionHandler")(False)
    _class(context, "java.lang.Thread").setDefaultUncaughtExceptionHandler(handler)


def delete_at_the_end(context: SparkContext, folder: str) -> None:
    """Delete a folder when the JVM ends. The JVM also ends if this process is killed."""
    hooks = _class(context, "org.apache.spark.util.ShutdownHookManager")
    hooks.registerShutdownDeleteDir(_class(context, "java.io.File")(folder))


def write_files_quickly(context: SparkContext) -> None:
    """Write files of a checkpoint without a checksum file and without starting a program.

    A kill between the writing of a file and of Hadoop's checksum would leave two files that do not agree. And Hadoop
    starts a `chmod` for every file: six in a batch. A process has one file system object, so replace it before a query
    asks for it.
    """
    compiler = _class(context, "org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(_class(context, "java.lang.Thread").currentThread().getContextClassLoader())
    compiler.cook(_LOCAL_FILES)
    conf = _class(context, "org.apache.hadoop.conf.Configuration")(context._jsc.hadoopConfiguration())
    conf.setClassLoader(compiler.getClassLoader())
    conf.set("fs.file.impl", "LocalFiles")
    file_system = _class(context, "org.apache.hadoop.fs.FileSystem")
    root = _class(context, "java.net.URI")("file:///")
    # The object from Spark's start. Once it is closed, Hadoop makes a new one.
    file_system.get(root, conf).close()
    file_system.get(root, conf).setWriteChecksum(False)


def _class(context: SparkContext, name: str) -> Any:
    assert context._jvm is not None
    return getattr(context._jvm, name)
