package tasks_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/extensions/tasks"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

//nolint:paralleltest // the suite counts goroutines
func TestConformance(t *testing.T) {
	sdktest.Conformance(t, tasks.New, sdktest.Options{Manifest: "../../manifests/tasks.yaml"})
}
