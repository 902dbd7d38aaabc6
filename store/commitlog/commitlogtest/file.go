package commitlogtest

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/switchboard-run/switchboard/store/commitlog"
)

// The kinds of records of a file.
const (
	recordAcquire byte = 1
	recordEntry   byte = 2
)

// Open returns a Memory that a file outlives the process with, as long as the machine
// runs. Snapshots are not in the file, and faults neither.
func Open(t testing.TB, path string) *Memory {
	t.Helper()
	m := &Memory{}
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	whole := int64(0)
	for len(b) >= 5 {
		n := int(binary.BigEndian.Uint32(b[1:]))
		if len(b) < 5+n {
			break // torn by a kill
		}
		m.load(t, b[0], b[5:5+n])
		b = b[5+n:]
		whole += int64(5 + n)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.Truncate(whole); err != nil {
		t.Fatal(err)
	}
	m.record = func(kind byte, b []byte) {
		out := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(b))) //nolint:gosec // small
		if _, err := f.Write(append(out, b...)); err != nil {
			t.Error(err)
		}
	}
	return m
}

func (m *Memory) load(t testing.TB, kind byte, b []byte) {
	t.Helper()
	if kind == recordAcquire {
		m.state.Epoch++
		m.state.Node = string(b[copy(m.state.Incarnation[:], b):])
		return
	}
	e, err := commitlog.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	m.entries = append(m.entries, b)
	m.state.Position, m.state.Schema = e.At(), e.Schema
}
