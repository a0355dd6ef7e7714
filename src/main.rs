use toml::de::{DeTable, DeValue};
fn main() {
    let text = "version = 1\n[memory]\npages = \"any\"\n\n[[port]]\nname = \"p0\"\ndoorbell = { packets = 32 }\n[[port]]\nname=\"p1\"\n";
    let t = DeTable::parse(text).unwrap();
    println!("{:?}", t.span());
    for (k, v) in t.get_ref() {
        println!("{} {:?} {:?}", k.get_ref(), k.span(), v.span());
        match v.get_ref() {
            DeValue::Array(a) => {
                for e in a.iter() {
                    println!("  el {:?} {:?}", e.span(), &text[e.span()]);
                }
            }
            DeValue::Table(t) => {
                for (k, v) in t.iter() {
                    println!("  {} {:?} {:?}", k.get_ref(), k.span(), v.span());
                }
            }
            _ => {}
        }
    }
    let e = DeTable::parse("a = 1\nb = [1,\nc=2").unwrap_err();
    println!("{:?} {:?} | {}", e.span(), e.message(), e);
    let e = "a = 1\na=2".parse::<toml::Table>().unwrap_err();
    println!("{:?} {:?} | {}", e.span(), e.message(), e);
}
