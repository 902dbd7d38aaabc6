package openai

import (
	"net"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	modelapitest.Suite(t, modelapitest.Subject{
		Kind: Kind(), Base: "/v1", Serve: func(l net.Listener) modelapitest.Fake { return openaitest.Serve(l) },
	})
}
