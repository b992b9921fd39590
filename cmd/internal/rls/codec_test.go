package rls

import (
	"bytes"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// rawCodec sends bytes as they are.
type rawCodec struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Values that are not UTF-8 have limits as others do, each value its own. A message that is none is
// an error.
func TestTextThatIsNotUTF8(t *testing.T) {
	r := run(t, yearly("1"))
	conn := dial(t, r.address)
	ask := func(message []byte) string {
		t.Helper()
		var answer ratelimit.RateLimitResponse
		err := conn.Invoke(t.Context(), ratelimit.RateLimitService_ShouldRateLimit_FullMethodName,
			message, &answer, grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2("proto")}))
		if err != nil {
			return "error"
		}
		return short(&answer)
	}
	message := func(value string) []byte {
		t.Helper()
		valid, err := proto.Marshal(request(0, "k="+string(bytes.Repeat([]byte("?"), len(value)))))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Replace(valid, bytes.Repeat([]byte("?"), len(value)), []byte(value), 1)
	}
	expect(t, "answers", []string{
		ask(message("a\xffb")), ask(message("a\xffb")), ask(message("a\xfeb")), ask(message("a\xfeb")),
		ask(message("é\xc3")), ask(message("é")), ask([]byte("\x0a\x05k")), ask([]byte("\xff")),
	}, "OK OK:0", "OVER OVER:0", "OK OK:0", "OVER OVER:0", "OK OK:0", "OK OK:0", "error", "error")
	r.Log.Until(t, "not UTF-8")
	if m := get(t, r.admin+"/metrics"); !strings.Contains(m, "\ntb_rls_repaired_requests_total 5\n") {
		t.Error(m)
	}
}

// FuzzRepair requires that a message is repaired exactly if its only fault is its text.
func FuzzRepair(f *testing.F) {
	valid, err := proto.Marshal(request(3, "k=v,l=w", "m=\u00e9"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add(bytes.ReplaceAll(valid, []byte("\u00e9"), []byte("\xff\xfe")))
	f.Fuzz(func(t *testing.T, message []byte) {
		var before, after ratelimit.RateLimitRequest
		repaired, ok := repair(message, before.ProtoReflect().Descriptor())
		errBefore := proto.Unmarshal(message, &before)
		switch {
		case errBefore == nil && !ok:
			t.Error("a message is not repaired")
		case !ok:
			return
		}
		if err := proto.Unmarshal(repaired, &after); err == nil && errBefore == nil &&
			!proto.Equal(&before, &after) {
			t.Errorf("%v became %v", &before, &after)
		}
	})
}
