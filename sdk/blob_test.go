package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// fileKeeper starts an extension and returns its client of the kernel.
func fileKeeper(t *testing.T, options sdktest.Options) *sdk.Kernel {
	t.Helper()
	started := make(chan *sdk.Kernel, 1)
	sdktest.Start(t, sdk.Extension{ID: "keeper", Start: func(_ context.Context, k *sdk.Kernel) error {
		started <- k
		return nil
	}}, options)
	return <-started
}

func TestAFileIsStoredAndReadBack(t *testing.T) {
	t.Parallel()
	k := fileKeeper(t, sdktest.Options{})
	for name, content := range map[string][]byte{
		"empty": nil, "a byte": {7}, "a chunk": bytes.Repeat([]byte("chunk123"), 32<<10),
		"many chunks": bytes.Repeat([]byte("0123456789"), 300_000),
	} {
		b, err := k.PutBlob(t.Context(), bytes.NewReader(content))
		if err != nil || b.Size != int64(len(content)) || len(b.Hash) != 64 {
			t.Fatalf("%s: storing it: %+v, %v", name, b, err)
		}
		var back bytes.Buffer
		got, err := k.GetBlob(t.Context(), b.Hash, &back)
		if err != nil || got != b || !bytes.Equal(back.Bytes(), content) {
			t.Errorf("%s: reading it: %+v, %d bytes, %v", name, got, back.Len(), err)
		}
		if _, err := k.Commit(t.Context(), sdk.Publish("keeper.said", name, sdk.Blobs(b.Hash))); err != nil {
			t.Errorf("%s: naming it: %v", name, err)
		}
	}
}

func TestAFileThatCannotBeStoredOrRead(t *testing.T) {
	t.Parallel()
	k := fileKeeper(t, sdktest.Options{})
	endless := io.LimitReader(zeros{}, 51<<20)
	if _, err := k.PutBlob(t.Context(), endless); !errors.Is(err, contract.ErrTooLarge) {
		t.Errorf("storing a file above the limit: %v", err)
	}
	broken := errors.New("the download broke off")
	if _, err := k.PutBlob(t.Context(), io.MultiReader(strings.NewReader("half"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("storing a file whose reader fails: %v", err)
	}
	unknown := strings.Repeat("ab", 32)
	if _, err := k.GetBlob(t.Context(), unknown, io.Discard); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("reading an unknown file: %v", err)
	}
	if _, err := k.Commit(t.Context(), sdk.Publish("keeper.said", 1, sdk.Blobs(unknown))); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("naming an unknown file: %v", err)
	}
	many := make([]string, contract.MaxBlobs+1)
	if _, err := k.Commit(t.Context(), sdk.Publish("keeper.said", 1, sdk.Blobs(many...))); !errors.Is(err, contract.ErrTooLarge) {
		t.Errorf("naming many files: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
