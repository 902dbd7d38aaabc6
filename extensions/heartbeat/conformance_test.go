package heartbeat_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/extensions/heartbeat"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestConformance(t *testing.T) {
	sdktest.Conformance(t, heartbeat.New, sdktest.Options{Manifest: "../../manifests/heartbeat.yaml"})
}
