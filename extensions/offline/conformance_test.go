package offline

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestConformance(t *testing.T) { //nolint:paralleltest // goroutines are counted
	sdktest.Conformance(t, New, sdktest.Options{Manifest: "../../manifests/offline.yaml"})
}

func TestThroughTheKernel(t *testing.T) {
	t.Parallel()
	k := sdktest.Start(t, New(), sdktest.Options{Manifest: "../../manifests/offline.yaml"})
	deltas, err := k.Complete(t.Context(), &sdk.CompleteRequest{
		Model:    Model,
		Messages: []*extensionv1.Message{{Role: "user", Content: "list channels"}},
		Tools:    []*extensionv1.Tool{{Name: "list_channels"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(deltas) != 2 || deltas[0].GetCall().GetName() != "list_channels" ||
		deltas[0].GetModel() != "offline/grammar" || deltas[1].GetFinish() != "tool_calls" {
		t.Errorf("deltas %v", deltas)
	}
}
