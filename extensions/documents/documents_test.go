package documents

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/document"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

//nolint:paralleltest // the suite counts goroutines
func TestConformance(t *testing.T) {
	sdktest.Conformance(t, func() sdk.Extension { return New(document.Reader{}) },
		sdktest.Options{Manifest: "../../manifests/documents.yaml"})
}

func TestPart(t *testing.T) {
	t.Parallel()
	const text = "Привет, мир"
	for _, tt := range []struct {
		from, most int
		want       string
	}{
		{0, 100, text},
		{0, 5, "Пр\n[bytes 0 to 4 of 20: read_document {reference: 3f2a9c, from: 4} reads on]"},
		{5, 4, "ив\n[bytes 4 to 8 of 20: "},
		{12, 100, ", мир"},
	} {
		if got := part(text, "3f2a9c", tt.from, tt.most); !strings.HasPrefix(got, tt.want) {
			t.Errorf("from %d, %d bytes: %q, want %q", tt.from, tt.most, got, tt.want)
		}
	}
}

// unread are files that are there, and must not be read.
type unread struct{ name string }

func (u unread) FindBlob(_ context.Context, name string) (sdk.Blob, error) {
	if name != u.name {
		return sdk.Blob{}, contract.ErrNotFound
	}
	return sdk.Blob{Hash: name}, nil
}

func (unread) GetBlob(context.Context, string, io.Writer) (sdk.Blob, error) {
	return sdk.Blob{}, errors.New("the file was read")
}

// The run loop reads the image: the tool only looks whether it is there.
func TestShowingReadsNoFile(t *testing.T) {
	t.Parallel()
	d := &documents{files: unread{"3f2a9c"}}
	call := func(reference string) error {
		_, err := d.show(t.Context(), sdk.ToolCall{Arguments: json.RawMessage(`{"reference":"` + reference + `"}`)})
		return err
	}
	if err := call("[image 3f2a9c: cat.jpg]"); err != nil {
		t.Error(err)
	}
	if err := call("ffffff"); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}
