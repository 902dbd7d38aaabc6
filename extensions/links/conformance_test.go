package links_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/extensions/links"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestConformance(t *testing.T) {
	sdktest.Conformance(t, links.New, sdktest.Options{Manifest: "../../manifests/links.yaml"})
}
