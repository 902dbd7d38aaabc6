package sdk

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/busv1"
)

func TestSizeOfCommitsIsNotUnderestimated(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	version := int64(math.MaxInt64)
	for _, c := range []*busv1.Commit{
		{},
		{Id: long, Lane: long},
		{Effects: []*busv1.Effect{{}, {Kind: &busv1.Effect_Publish{Publish: &busv1.Publish{
			Topic: long, Key: long, DedupeKey: long, Payload: []byte(long),
		}}}}},
		{Effects: []*busv1.Effect{{Kind: &busv1.Effect_Put{Put: &busv1.Put{
			Key: long, Value: []byte(long), Version: &version,
		}}}}},
		{Effects: []*busv1.Effect{{Kind: &busv1.Effect_Input{Input: &busv1.Input{Session: long, Text: long}}}}},
	} {
		if got, size := sizeBound(c), proto.Size(c); got < size || got > size+200*(len(c.GetEffects())+1) {
			t.Errorf("sizeBound = %d for a commit of %d bytes", got, size)
		}
	}
}
