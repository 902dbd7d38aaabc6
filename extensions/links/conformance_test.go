package links_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/links"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestConformance(t *testing.T) {
	sdktest.Conformance(t, links.New,
		sdktest.Facts{ID: links.ID, Tools: true, Subscriptions: []string{contract.TopicAgentOutput}})
}
