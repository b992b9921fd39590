package rls

import (
	"unicode/utf8"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// lenientCodec reads a request whose texts are not all UTF-8. Envoy sends the values of header
// fields as they come, and treats an error as a failure of the service, which may pass every limit.
type lenientCodec struct {
	encoding.CodecV2
	repaired func() // is called for each request that was not UTF-8
}

func newCodec(repaired func()) lenientCodec {
	return lenientCodec{encoding.GetCodecV2("proto"), repaired}
}

// Unmarshal implements encoding.CodecV2.
func (c lenientCodec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	r, ok := v.(*ratelimit.RateLimitRequest)
	if err == nil || !ok {
		return err
	}
	text, ok := repair(data.Materialize(), r.ProtoReflect().Descriptor())
	if !ok || proto.Unmarshal(text, r) != nil {
		return err
	}
	c.repaired()
	return nil
}

// repair returns a message whose strings have \xff in place of a byte FF that is not UTF-8. It
// reports false if the bytes are not a message.
func repair(b []byte, message protoreflect.MessageDescriptor) (repaired []byte, ok bool) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, false
		}
		m := protowire.ConsumeFieldValue(number, kind, b[n:])
		if m < 0 {
			return nil, false
		}
		field := message.Fields().ByNumber(number)
		if kind != protowire.BytesType || !mayHaveText(field) {
			repaired, b = append(repaired, b[:n+m]...), b[n+m:]
			continue
		}
		value, _ := protowire.ConsumeBytes(b[n:])
		if field.Kind() == protoreflect.StringKind {
			value = escape(value)
		} else if value, ok = repair(value, field.Message()); !ok {
			return nil, false
		}
		repaired = protowire.AppendBytes(append(repaired, b[:n]...), value)
		b = b[n+m:]
	}
	return repaired, true
}

// mayHaveText reports whether a field, or nil, is a string or a message.
func mayHaveText(field protoreflect.FieldDescriptor) bool {
	return field != nil &&
		(field.Kind() == protoreflect.StringKind || field.Kind() == protoreflect.MessageKind)
}

// escape returns a text with \xff in place of a byte FF that is not UTF-8. It must be fast: clients
// can send 60 KiB of such bytes, which each descriptor may have, and Envoy waits for 20 ms.
func escape(text []byte) []byte {
	const digits = "0123456789abcdef"
	escaped := make([]byte, 0, 4*len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			escaped = append(escaped, '\\', 'x', digits[text[0]>>4], digits[text[0]&15])
		} else {
			escaped = append(escaped, text[:n]...)
		}
		text = text[n:]
	}
	return escaped
}
