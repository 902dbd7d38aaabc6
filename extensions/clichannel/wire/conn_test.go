package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// pair returns both ends of a unix socket.
func pair(t *testing.T, timeout time.Duration) (near *Conn, far net.Conn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err = net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = far.Close() })
	return NewConn(c, timeout), far
}

func TestReadContinuesAfterGarbage(t *testing.T) {
	t.Parallel()
	near, far := pair(t, 0)
	go func() { _, _ = io.WriteString(far, "what?\n{\"type\":\"shown\",\"id\":\"7\"}\n") }()
	if _, err := near.Read(); !errors.Is(err, ErrBadFrame) {
		t.Fatalf("got %v", err)
	}
	f, err := near.Read()
	if err != nil || f.ID != "7" {
		t.Fatalf("got %+v, %v", f, err)
	}
}

func TestReadRefusesOversizeLinesWithoutKeepingThem(t *testing.T) {
	t.Parallel()
	near, far := pair(t, 0)
	go func() {
		chunk := strings.Repeat("x", 64<<10)
		for range 2 * MaxFrame / len(chunk) {
			if _, err := io.WriteString(far, chunk); err != nil {
				return
			}
		}
	}()
	if _, err := near.Read(); !errors.Is(err, ErrTooLong) {
		t.Fatalf("got %v", err)
	}
}

func TestReadDistinguishesACleanEndFromACutLine(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]error{"": io.EOF, `{"type":"sh`: io.ErrUnexpectedEOF} {
		near, far := pair(t, 0)
		_, _ = io.WriteString(far, sent)
		_ = far.Close()
		if _, err := near.Read(); !errors.Is(err, want) {
			t.Errorf("after %q: got %v, want %v", sent, err, want)
		}
	}
}

func TestConcurrentWritesDoNotMix(t *testing.T) {
	t.Parallel()
	near, far := pair(t, 0)
	const writers, each = 8, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := near.Write(Frame{Type: Message, ID: fmt.Sprintf("%d-%d", w, i),
					Text: strings.Repeat("ж", 3000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := make([]int, writers)
	c := NewConn(far, 0)
	for range writers * each {
		f, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		var w, i int
		if _, err := fmt.Sscanf(f.ID, "%d-%d", &w, &i); err != nil {
			t.Fatal(err)
		}
		if i != next[w] {
			t.Fatalf("writer %d: got %d, want %d", w, i, next[w])
		}
		next[w]++
	}
	wg.Wait()
}

func TestWriteGivesUpOnAReaderThatDoesNotRead(t *testing.T) {
	t.Parallel()
	near, _ := pair(t, 10*time.Millisecond)
	for range 1000 {
		if err := near.Write(Frame{Type: Draft, Text: strings.Repeat("x", 64<<10)}); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("64 MB went into a socket without a reader")
}
