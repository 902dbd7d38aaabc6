package documents

import (
	"strings"
	"testing"

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
