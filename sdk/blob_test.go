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
		if _, err := k.Commit(t.Context(), sdk.Publish("keeper.said", name).Keep(b.Hash)); err != nil {
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
	cut := io.MultiReader(strings.NewReader("half"), failing{io.ErrUnexpectedEOF})
	if b, err := k.PutBlob(t.Context(), cut); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("storing a file that broke off: %+v, %v", b, err)
	}
	unknown := strings.Repeat("ab", 32)
	if _, err := k.GetBlob(t.Context(), unknown, io.Discard); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("reading an unknown file: %v", err)
	}
	if _, err := k.Commit(t.Context(), sdk.Publish("keeper.said", 1).Keep(unknown)); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("naming an unknown file: %v", err)
	}
	many := make([]string, contract.MaxBlobs+1)
	if _, err := k.Commit(t.Context(), sdk.Publish("keeper.said", 1).Keep(many...)); !errors.Is(err, contract.ErrTooLarge) {
		t.Errorf("naming many files: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A file that a tool stored belongs to the session from its result on, and a later call
// there reads it by the digits of its reference.
func TestASessionKeepsTheFileOfAResult(t *testing.T) {
	t.Parallel()
	var k *sdk.Kernel
	tool := func(name string, call func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error)) sdk.Tool {
		return sdk.Tool{Name: name, Description: name, Schema: []byte(`{"type":"object"}`), Call: call}
	}
	world := sdktest.Start(t, sdk.Extension{
		ID:    "painter",
		Start: func(_ context.Context, started *sdk.Kernel) error { k = started; return nil },
		Tools: []sdk.Tool{
			tool("draw", func(ctx context.Context, _ sdk.ToolCall) (sdk.ToolResult, error) {
				b, err := k.PutBlob(ctx, strings.NewReader("a drawing"))
				a := contract.Attachment{Kind: contract.KindImage, Name: "d.png", Blob: b.Hash}
				return sdk.ToolResult{Content: a.Reference(), Blobs: []string{b.Hash}}, err
			}),
			tool("describe", func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
				var args struct{ File string }
				if err := c.Decode(&args); err != nil {
					return sdk.ToolResult{}, err
				}
				a, err := contract.ParseReference(args.File)
				if err != nil {
					return sdk.ToolResult{}, err
				}
				found, err := k.FindBlob(ctx, a.Blob)
				if err != nil {
					return sdk.ToolResult{}, err
				}
				var text strings.Builder
				_, err = k.GetBlob(ctx, found.Hash, &text)
				return sdk.ToolResult{Content: text.String()}, err
			}),
		},
	}, sdktest.Options{})
	reference := world.MustCall("draw", map[string]any{})
	if got := world.MustCall("describe", map[string]any{"file": reference}); got != "a drawing" {
		t.Errorf("%s has %q", reference, got)
	}
	if r := world.Call("describe", map[string]any{"file": "abcdef"}); !r.GetIsError() {
		t.Errorf("an unknown file: %v", r)
	}
}
