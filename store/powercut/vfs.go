package powercut

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Types of the functions of a VFS and of its files.
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	writeFunc    = func(tls *libc.TLS, file, data uintptr, n int32, at int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// openFile is a recorded file.
type openFile struct {
	disk    *Disk
	inode   int
	methods *sqlite3.Tsqlite3_io_methods // of the layer below
}

var (
	system sqlite3.Tsqlite3_vfs // the default VFS below

	open struct {
		sync.RWMutex
		files   map[uintptr]*openFile
		methods map[uintptr]uintptr // recording methods, by those of the layer below
	}
)

// init registers the recording VFS as the default one.
func init() {
	tls := libc.NewTLS()
	defer tls.Close()
	if rc := sqlite3.Xsqlite3_initialize(tls); rc != sqlite3.SQLITE_OK {
		panic("powercut: SQLite cannot be initialized")
	}
	system = *at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	open.files, open.methods = map[uintptr]*openFile{}, map[uintptr]uintptr{}
	ours := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(system)))
	name, err := libc.CString("powercut")
	if ours == 0 || err != nil {
		panic("powercut: out of memory")
	}
	v := at[sqlite3.Tsqlite3_vfs](ours)
	*v = system
	v.FzName, v.FpNext = name, 0
	set[openFunc](&v.FxOpen, openHook)
	set[deleteFunc](&v.FxDelete, deleteHook)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, ours, 1); rc != sqlite3.SQLITE_OK {
		panic("powercut: the layer cannot be registered")
	}
}

// at converts a pointer of SQLite.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) } //nolint:gosec // SQLite allocates it, not Go

// function converts a function pointer of SQLite to a Go function.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) } //nolint:gosec // how the library keeps functions

// set stores a Go function as a function pointer of SQLite.
func set[F any](field *uintptr, f F) { *(*F)(unsafe.Pointer(field)) = f } //nolint:gosec // likewise

func openHook(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	var d *Disk
	var path string
	var content []byte
	if name != 0 {
		path = libc.GoString(name)
		if d = diskOf(path); d != nil {
			content = existing(path)
		}
	}
	rc := function[openFunc](system.FxOpen)(tls, vfs, name, file, flags, outFlags)
	if d == nil || rc != sqlite3.SQLITE_OK {
		return rc
	}
	f := at[sqlite3.Tsqlite3_file](file)
	open.Lock()
	defer open.Unlock()
	open.files[file] = &openFile{
		disk: d, inode: d.opened(path, content), methods: at[sqlite3.Tsqlite3_io_methods](f.FpMethods),
	}
	f.FpMethods = recording(tls, f.FpMethods)
	return rc
}

// recording returns file methods that record. The caller holds open.
func recording(tls *libc.TLS, methods uintptr) uintptr {
	if ours, known := open.methods[methods]; known {
		return ours
	}
	m := *at[sqlite3.Tsqlite3_io_methods](methods)
	ours := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(m)))
	if ours == 0 {
		panic("powercut: out of memory")
	}
	set[closeFunc](&m.FxClose, closeHook)
	set[writeFunc](&m.FxWrite, writeHook)
	set[truncateFunc](&m.FxTruncate, truncateHook)
	set[syncFunc](&m.FxSync, syncHook)
	*at[sqlite3.Tsqlite3_io_methods](ours) = m
	open.methods[methods] = ours
	return ours
}

func fileOf(file uintptr) *openFile {
	open.RLock()
	defer open.RUnlock()
	return open.files[file]
}

func closeHook(tls *libc.TLS, file uintptr) int32 {
	f := fileOf(file)
	open.Lock()
	delete(open.files, file)
	open.Unlock()
	return function[closeFunc](f.methods.FxClose)(tls, file)
}

func writeHook(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	f := fileOf(file)
	rc := function[writeFunc](f.methods.FxWrite)(tls, file, data, n, offset)
	if rc == sqlite3.SQLITE_OK {
		f.disk.wrote(f.inode, offset, unsafe.Slice(at[byte](data), n)) //nolint:gosec // copied at once
	}
	return rc
}

func truncateHook(tls *libc.TLS, file uintptr, size int64) int32 {
	f := fileOf(file)
	rc := function[truncateFunc](f.methods.FxTruncate)(tls, file, size)
	if rc == sqlite3.SQLITE_OK {
		f.disk.truncated(f.inode, size)
	}
	return rc
}

func syncHook(tls *libc.TLS, file uintptr, flags int32) int32 {
	f := fileOf(file)
	rc := function[syncFunc](f.methods.FxSync)(tls, file, flags)
	if rc == sqlite3.SQLITE_OK {
		f.disk.synced(f.inode)
	}
	return rc
}

func deleteHook(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32 {
	rc := function[deleteFunc](system.FxDelete)(tls, vfs, name, syncDir)
	if rc == sqlite3.SQLITE_OK {
		if path := libc.GoString(name); diskOf(path) != nil {
			diskOf(path).removed(path, syncDir != 0)
		}
	}
	return rc
}
